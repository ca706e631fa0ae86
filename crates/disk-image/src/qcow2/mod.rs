//! QEMU's copy-on-write format.

mod create;
mod grow;
mod header;

pub use create::{Backing, create_qcow2};
pub use grow::grow_qcow2;
pub use header::{HEADER_ROOM, Header, check_tables, is_qcow2};
