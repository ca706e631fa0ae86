//! What every daemon needs: stores of watched objects, work queues, events, patches.

pub mod events;
mod key;
pub mod patch;
mod queue;
mod store;
mod watch;

pub use events::Recorder;
pub use key::NamespacedName;
pub use queue::{Next, Queue};
pub use store::{Change, IndexOf, Store};
pub use watch::Watch;
