//! Why a command was not carried out.

use kubevirt_domain::ConvertError;
use kubevirt_domain::migration::CannotReceive;
use kubevirt_qemu::agent::AgentError;
use kubevirt_qemu::process::StartError;
use kubevirt_qemu::qmp::QmpError;

use crate::volumes::VolumeError;

/// Why a command was not carried out, in words for whoever asked.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The request holds no VMI that can be read.
    #[error("the request holds no readable VirtualMachineInstance: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The request is for another machine.
    #[error("this launcher runs {ours}, not {theirs}")]
    AnotherMachine {
        /// UID or name of our machine.
        ours: String,
        /// UID or name that was asked for.
        theirs: String,
    },
    /// There is no machine yet, or none any more.
    #[error("the virtual machine does not run")]
    NotRunning,
    /// The machine ran and ended; a launcher does not start a second one.
    #[error("the virtual machine has ended: {0}")]
    Ended(String),
    /// The VMI asks for what cannot be done here.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// The machine that runs elsewhere cannot come here.
    #[error(transparent)]
    CannotReceive(#[from] CannotReceive),
    /// The machine will come from another launcher, or nothing will.
    #[error("the virtual machine comes from another node; it is not started here")]
    ComesFromElsewhere,
    /// There is no migration to speak of.
    #[error("the virtual machine is not migrating")]
    NotMigrating,
    /// The guest may already run on the target.
    #[error("the migration can no longer be cancelled: the guest runs on the target already")]
    CannotCancel,
    /// There is one migration at a time.
    #[error("the virtual machine is already on its way with migration {uid}")]
    AlreadyMigrating {
        /// UID of the migration under way.
        uid: String,
    },
    /// A migration is tried once.
    #[error("migration {uid} has ended already: {how}")]
    MigrationOver {
        /// Its UID.
        uid: String,
        /// How it ended.
        how: String,
    },
    /// The machine cannot be moved, or not so.
    #[error("cannot migrate: {0}")]
    CannotMigrate(String),
    /// QEMU did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Volumes cannot be made ready.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Volumes(Vec<VolumeError>),
    /// Machines cannot run on this host.
    #[error(transparent)]
    NoAccelerator(#[from] kubevirt_host::kvm::NoAccelerator),
    /// QEMU cannot be asked what it has.
    #[error(transparent)]
    Probe(#[from] crate::host::ProbeError),
    /// QEMU did not do as it was told.
    #[error(transparent)]
    Qmp(#[from] QmpError),
    /// A device does not leave.
    #[error(transparent)]
    Unplug(#[from] kubevirt_qemu::machine::UnplugError),
    /// The guest agent did not do as it was told.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// There is no guest agent.
    #[error("the QEMU guest agent is not connected: install and start qemu-guest-agent in the guest")]
    NoAgent,
    /// A file or socket cannot be used.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// What cannot be done as things are, or as it was asked for.
    #[error("{0}")]
    Refused(String),
    /// What we do not have.
    #[error("{0}")]
    Unsupported(String),
}

impl CommandError {
    /// An error of the system, with what was tried.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        |source| Self::Io { what: what.into(), source }
    }
}
