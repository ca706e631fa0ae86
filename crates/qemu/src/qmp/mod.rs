//! The QEMU Machine Protocol: requests with replies in any order, and events to as many listeners as like to hear.

mod client;
mod error;
mod event;
mod events;
mod link;
mod send;
mod wire;

pub use client::{Limits, NoArguments, Qmp};
pub use error::{ErrorClass, Loss, QmpError};
pub use event::{AcpiOst, BlockJobEvent, Event, Peer};
pub use events::{Events, Happened};
pub use wire::Version;
