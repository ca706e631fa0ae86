//! What virt-handler and virt-launcher say to each other.
//!
//! Commands go from the handler to the launcher ([`cmd`]), events back ([`notify`]). Two launchers hand a machine over
//! from one to the other ([`target`]) through sockets that their handlers connect ([`migration`]). Handler and
//! launcher ask for the versions that the other knows ([`version`]), since a launcher outlives upgrades of its
//! handler. Objects travel as JSON and unknown fields are passed over.

pub mod connect;
pub mod migration;
pub mod qemu;
pub mod report;
pub mod stats;
pub mod version;

pub use report::DomainReport;

/// Commands of the handler.
#[allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    reason = "generated; the protocol file says what each is"
)]
pub mod cmd {
    tonic::include_proto!("kubevirt.cmd.v1");

    /// Versions of the commands.
    pub mod info {
        tonic::include_proto!("kubevirt.cmd.info");
    }
}

/// Events of the launcher.
#[allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    reason = "generated; the protocol file says what each is"
)]
pub mod notify {
    tonic::include_proto!("kubevirt.notify.v1");

    /// Versions of the events.
    pub mod info {
        tonic::include_proto!("kubevirt.notify.info");
    }
}

/// What a launcher asks of another one that receives its machine.
#[allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    reason = "generated; the protocol file says what each is"
)]
pub mod target {
    tonic::include_proto!("kubevirt.migration.v1");
}

/// Socket of the launcher, in its folder for sockets.
pub const LAUNCHER_SOCKET: &str = "launcher-sock";

/// Socket of the launcher before it is ready.
pub const STARTING_LAUNCHER_SOCKET: &str = "launcher-init-sock";

/// Socket of the handler in the launcher's shared folder.
pub const NOTIFY_SOCKET: &str = "domain-notify-pipe.sock";
