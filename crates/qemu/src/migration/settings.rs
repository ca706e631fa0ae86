//! How to move: over which channel, with which capabilities, under which limits.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::machine::{Machine, words};
use crate::qmp::{NoArguments, QmpError};

/// Where the guest's state goes or comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Channel {
    /// A unix socket, where the target listens.
    Unix(PathBuf),
    /// A file handed over with [`Machine::pass_fd`] under this name. One channel only, so no multifd.
    Fd(String),
    /// An address, where the target listens.
    Tcp(SocketAddr),
}

impl Channel {
    /// As QEMU writes it.
    pub fn uri(&self) -> String {
        match self {
            Self::Unix(path) => format!("unix:{}", path.display()),
            Self::Fd(name) => format!("fd:{name}"),
            Self::Tcp(address) => format!("tcp:{address}"),
        }
    }
}

words! {
    /// A way of migrating that is off unless asked for. Both sides need the same.
    Capability {
        AutoConverge = "auto-converge",
        BackgroundSnapshot = "background-snapshot",
        Compress = "compress",
        DirtyBitmaps = "dirty-bitmaps",
        Events = "events",
        LateBlockActivate = "late-block-activate",
        MappedRam = "mapped-ram",
        Multifd = "multifd",
        PauseBeforeSwitchover = "pause-before-switchover",
        PostcopyBlocktime = "postcopy-blocktime",
        PostcopyPreempt = "postcopy-preempt",
        PostcopyRam = "postcopy-ram",
        ReturnPath = "return-path",
        SwitchoverAck = "switchover-ack",
        ValidateUuid = "validate-uuid",
        Xbzrle = "xbzrle",
        ZeroBlocks = "zero-blocks",
        ZeroCopySend = "zero-copy-send",
    }
}

/// Limits and numbers. Only the given ones are changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Parameters {
    /// Bytes a second; zero is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bandwidth: Option<u64>,
    /// The longest pause of the guest, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downtime_limit: Option<u64>,
    /// Bytes a second after the switch to postcopy; zero is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_postcopy_bandwidth: Option<u64>,
    /// Connections for memory with multifd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multifd_channels: Option<u8>,
    /// How multifd compresses: `none`, `zlib` or `zstd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multifd_compression: Option<String>,
    /// The first brake of auto-converge, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_throttle_initial: Option<u8>,
    /// Each further brake, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_throttle_increment: Option<u8>,
    /// The hardest brake, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cpu_throttle: Option<u8>,
    /// The id of the TLS credentials object; empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_creds: Option<String>,
    /// The name that the target's certificate must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_hostname: Option<String>,
}

/// How to migrate: the same on both sides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// What is on; all else is off.
    pub capabilities: BTreeSet<Capability>,
    /// Limits and numbers.
    pub parameters: Parameters,
}

impl Machine {
    /// The capabilities that this QEMU knows, of which some may still need more from the host.
    pub async fn migration_capabilities(&self) -> Result<BTreeSet<Capability>, QmpError> {
        let known = self.query_capabilities().await?;
        Ok(known.into_iter().map(|one| one.capability).collect())
    }

    /// The parameters as they are.
    pub async fn migration_parameters(&self) -> Result<Parameters, QmpError> {
        self.qmp().call("query-migrate-parameters", NoArguments {}).await
    }

    /// Changes parameters, also of a migration under way.
    pub async fn set_migration_parameters(&self, parameters: &Parameters) -> Result<(), QmpError> {
        self.qmp().run("migrate-set-parameters", parameters).await
    }

    /// Turns on what is asked for and off what an earlier attempt has left on.
    pub(super) async fn set_migration(&self, settings: &Settings) -> Result<(), QmpError> {
        let mut wanted = settings.capabilities.clone();
        // Without it QEMU would not tell how the migration goes.
        wanted.insert(Capability::Events);
        let known = self.query_capabilities().await?;
        let missing = wanted.iter().filter(|one| known.iter().all(|known| known.capability != **one));
        let changed = known.iter().filter(|known| known.state != wanted.contains(&known.capability));
        // One that QEMU does not know is asked for all the same: QEMU's refusal names it.
        let changes: Vec<_> = missing
            .map(|capability| State { capability: capability.clone(), state: true })
            .chain(changed.map(|known| State { capability: known.capability.clone(), state: !known.state }))
            .collect();
        if !changes.is_empty() {
            let arguments = json!({ "capabilities": changes });
            self.qmp().run("migrate-set-capabilities", arguments).await?;
        }
        self.set_migration_parameters(&settings.parameters).await
    }

    async fn query_capabilities(&self) -> Result<Vec<State>, QmpError> {
        self.qmp().call("query-migrate-capabilities", NoArguments {}).await
    }
}

#[derive(Serialize, Deserialize)]
struct State {
    capability: Capability,
    state: bool,
}
