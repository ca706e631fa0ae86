//! Moving a running guest to another QEMU.

mod incoming;
mod outgoing;
mod progress;
mod settings;

pub use incoming::Incoming;
pub use outgoing::{Migration, MigrationError};
pub use progress::{MigrationStatus, Progress, Ram};
pub use settings::{Capability, Channel, Parameters, Settings};
