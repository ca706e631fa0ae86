//! What QEMU can do on this host, as the program of the init container wrote it down.

use std::io;
use std::path::{Path, PathBuf};

use kubevirt_domain::facts::HostCpu;
use serde::{Deserialize, Serialize};

/// The file of facts, in the folder that the program and the handler share.
pub const FILE: &str = "facts.json";
/// The file beside it, of what launchers would ask.
pub const QEMU_FILE: &str = "qemu.json";

/// What QEMU can do on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Facts {
    /// Architecture of the host: `amd64`, `arm64` or `s390x`.
    pub architecture: String,
    /// Whether guests run with KVM.
    pub kvm: bool,
    /// Maker of the CPU, such as `Intel`.
    pub vendor: Option<String>,
    /// The host's CPU: its features, and the named model that is nearest to it.
    pub cpu: HostCpu,
    /// Further spellings of the CPU's features.
    pub feature_aliases: Vec<String>,
    /// The CPU models that QEMU knows.
    pub models: Vec<Model>,
    /// The machine types that QEMU knows.
    pub machine_types: Vec<MachineType>,
    /// The interfaces of Hyper-V that guests can use.
    pub hyperv: Vec<String>,
    /// The time stamp counter.
    pub tsc: Option<Tsc>,
    /// What can keep a guest's memory from the host.
    pub encryption: Encryption,
    /// Other architectures whose guests can be emulated.
    pub foreign_architectures: Vec<String>,
}

/// A CPU model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Whether this host has all that it needs.
    pub usable: bool,
}

/// A machine type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineType {
    /// Its name.
    pub name: String,
    /// Whether it is on its way out.
    pub deprecated: bool,
}

/// The counter by which guests tell time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tsc {
    /// Its frequency in Hertz.
    pub frequency: u64,
    /// Whether guests can have another frequency.
    pub scalable: bool,
}

/// What can keep a guest's memory from the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the names are those of the makers")]
pub struct Encryption {
    pub sev: bool,
    pub sev_es: bool,
    pub sev_snp: bool,
    pub tdx: bool,
    pub secure_execution: bool,
}

/// The facts are not known.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// They were not written, or cannot be.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// They are not understood.
    #[error("cannot understand {path}: {source}")]
    Text {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}

impl Facts {
    /// Reads what was written down.
    pub fn read(path: &Path) -> Result<Self, FactsError> {
        let bytes = std::fs::read(path).map_err(|source| FactsError::File { path: path.into(), source })?;
        serde_json::from_slice(&bytes).map_err(|source| FactsError::Text { path: path.into(), source })
    }
}

/// Writes something down, all at once.
pub fn write(what: &impl Serialize, path: &Path) -> Result<(), FactsError> {
    let text =
        serde_json::to_vec_pretty(what).map_err(|source| FactsError::Text { path: path.into(), source })?;
    let beside = path.with_extension("new");
    let written = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|source| FactsError::File { path: path.into(), source })
}
