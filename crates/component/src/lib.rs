//! What every daemon needs: stores of watched objects, work queues, events, patches,
//! flags, leadership, TLS, metrics, health, profiles and the cluster configuration.

mod answers;
mod client;
pub mod configuration;
mod cutting;
pub mod events;
pub mod flags;
pub mod health;
mod key;
pub mod leader;
pub mod limits;
pub mod metrics;
mod pace;
pub mod patch;
pub mod profiler;
mod queue;
mod readable;
mod role;
pub mod serve;
pub mod start;
mod store;
pub mod tls;
mod unread;
mod watch;

pub use client::Unusable;
pub use configuration::Configuration;
pub use events::Recorder;
pub use flags::Common;
pub use health::Health;
pub use key::NamespacedName;
pub use limits::Limits;
pub use metrics::{Metrics, QueueMetrics};
pub use queue::{Next, Queue};
pub use readable::{Readable, Unreadable};
pub use role::{Role, webhook_rate};
pub use store::{Change, IndexOf, Store};
pub use unread::{Managers, Unread};
pub use watch::Watch;
