//! Byte streams over WebSocket: consoles, displays, forwarded ports.
//!
//! The same protocol runs between a client and virt-api and between virt-api and a handler: every binary or text
//! message is the next piece of the stream, and messages have no meaning of their own. [`accept`] is the server's
//! side of the handshake and [`Offer`] the client's; both lead to a [`Stream`], which reads and writes bytes.

mod accept;
mod beat;
mod farewell;
mod join;
mod offer;
mod pulse;
mod relay;
mod stream;

pub use accept::{Accepted, NotAStream, accept};
pub use farewell::{Code, Farewell, phrases};
pub use join::join;
pub use offer::{Offer, Refused};
pub use pulse::Pulse;
pub use relay::{Ended, relay};
pub use stream::{Stream, TooLarge};

/// The sub-protocol that clients of KubeVirt name.
pub const PROTOCOL: &str = "plain.kubevirt.io";

/// A connection that was HTTP before.
pub type Upgraded = hyper_util::rt::TokioIo<hyper::upgrade::Upgraded>;
