//! Speaks netlink: the one way to change links, addresses and nftables rules without running another program.
//!
//! Messages are put together and taken apart by hand. nf_tables needs that anyway, and whoever reads only the
//! attributes that it needs is not stopped by a link of a kind that it has never heard of.

mod message;
mod socket;

pub use message::{Attributes, Message, attributes, nested, text};
pub use socket::{Reply, Socket};

/// Flags of a message's header.
pub mod flag {
    /// Asks for something.
    pub const REQUEST: u16 = 0x1;
    /// Wants to be told that it was done.
    pub const ACK: u16 = 0x4;
    /// Wants all of the kind.
    pub const DUMP: u16 = 0x300;
    /// Fails if it is there already.
    pub const EXCLUSIVE: u16 = 0x200;
    /// Makes it if it is not there.
    pub const CREATE: u16 = 0x400;
    /// Comes last.
    pub const APPEND: u16 = 0x800;
}
