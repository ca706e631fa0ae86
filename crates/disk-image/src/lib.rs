//! Disk images as files: what they are, making them and growing them, without running a program.
//!
//! Everything blocks, holds at most a few hundred kilobytes in memory whatever the size of the image, and puts a
//! finished image in place in one step: nobody sees half of one, and a crash leaves the old state.

mod bytes;
mod error;
mod foreign;
pub mod iso;
mod metrics_disk;
mod place;
mod probe;
mod qcow2;
mod raw;
mod space;

pub use error::ImageError;
pub use metrics_disk::{create_metrics_disk, read_metrics, write_metrics};
pub use place::{Outcome, create, replace};
pub use probe::{Format, ImageInfo, Qcow2Info, probe};
pub use qcow2::{Backing, create_qcow2, grow_qcow2};
pub use raw::{Allocation, create_raw, grow_raw};
pub use space::{Allowance, Fit, align_down, fit, free_space};
