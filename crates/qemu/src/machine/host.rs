//! What this QEMU can do on this host: what a node tells of itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Machine;
use crate::qmp::{NoArguments, QmpError};

/// A CPU model that this QEMU knows.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CpuDefinition {
    /// Its name.
    pub name: String,
    /// The features that this host lacks for it; none means that it can run, nothing known that QEMU cannot tell.
    pub unavailable_features: Option<Vec<String>>,
    /// Whether it means the same on every host.
    #[serde(default)]
    pub migration_safe: Option<bool>,
    /// The versioned model that it stands for.
    pub alias_of: Option<String>,
    /// Whether it is on its way out.
    #[serde(default)]
    pub deprecated: bool,
}

impl CpuDefinition {
    /// Whether a guest with this CPU can run here.
    pub fn is_usable(&self) -> bool {
        self.unavailable_features.as_ref().is_some_and(Vec::is_empty)
    }
}

/// A CPU model and its properties.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuModel {
    /// The model's name.
    pub name: String,
    /// What differs from the plain model, or in a full expansion everything.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub props: BTreeMap<String, Value>,
}

impl CpuModel {
    /// A plain model.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), props: BTreeMap::new() }
    }

    /// The features that are on.
    pub fn features(&self) -> impl Iterator<Item = &str> {
        let on = self.props.iter().filter(|(_, value)| **value == Value::Bool(true));
        on.map(|(name, _)| name.as_str())
    }
}

/// How far to expand a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Expansion {
    /// To a base that never changes and what is on top of it.
    Static,
    /// To every single property.
    Full,
}

/// A machine type.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MachineType {
    /// Its name.
    pub name: String,
    /// Another name for it.
    pub alias: Option<String>,
    /// Whether it is what one gets without asking.
    #[serde(default)]
    pub is_default: bool,
    /// The most CPUs.
    pub cpu_max: u32,
    /// Whether CPUs can be plugged.
    #[serde(default)]
    pub hotpluggable_cpus: bool,
    /// Whether it is on its way out.
    #[serde(default)]
    pub deprecated: bool,
}

/// What the host offers for AMD SEV.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the fields are AMD's own")]
pub struct Sev {
    pub pdh: String,
    pub cert_chain: String,
    pub cbitpos: u32,
    pub reduced_phys_bits: u32,
    pub cpu0_id: Option<String>,
}

impl Machine {
    /// The CPU models that this QEMU knows, and what this host lacks for each.
    pub async fn cpu_definitions(&self) -> Result<Vec<CpuDefinition>, QmpError> {
        self.qmp.call("query-cpu-definitions", NoArguments {}).await
    }

    /// What a CPU model is made of on this host; that of `host` or `max` says what the host can do.
    pub async fn expand_cpu(&self, model: &CpuModel, how: Expansion) -> Result<CpuModel, QmpError> {
        #[derive(Deserialize)]
        struct Expanded {
            model: CpuModel,
        }
        let arguments = json!({ "type": how, "model": model });
        let expanded: Expanded = self.qmp.call("query-cpu-model-expansion", arguments).await?;
        Ok(expanded.model)
    }

    /// The machine types that this QEMU knows.
    pub async fn machine_types(&self) -> Result<Vec<MachineType>, QmpError> {
        self.qmp.call("query-machines", NoArguments {}).await
    }

    /// Whether the guest runs on KVM.
    pub async fn has_kvm(&self) -> Result<bool, QmpError> {
        #[derive(Deserialize)]
        struct Kvm {
            enabled: bool,
        }
        self.qmp.call::<Kvm>("query-kvm", NoArguments {}).await.map(|told| told.enabled)
    }

    /// The architecture of the guest: `x86_64`, `aarch64`, `s390x`.
    pub async fn architecture(&self) -> Result<String, QmpError> {
        #[derive(Deserialize)]
        struct Target {
            arch: String,
        }
        self.qmp.call::<Target>("query-target", NoArguments {}).await.map(|told| told.arch)
    }

    /// What the host offers for AMD SEV; an error where it offers nothing.
    pub async fn sev(&self) -> Result<Sev, QmpError> {
        self.qmp.call("query-sev-capabilities", NoArguments {}).await
    }

    /// The measurement of an SEV guest that has not started yet, in base64.
    pub async fn sev_measurement(&self) -> Result<String, QmpError> {
        #[derive(Deserialize)]
        struct Measured {
            data: String,
        }
        let measured: Measured = self.qmp.call("query-sev-launch-measure", NoArguments {}).await?;
        Ok(measured.data)
    }

    /// Gives an SEV guest its secret before it starts; header and secret in base64.
    pub async fn inject_sev_secret(&self, header: &str, secret: &str) -> Result<(), QmpError> {
        let arguments = json!({ "packet-header": header, "secret": secret });
        self.qmp.run("sev-inject-launch-secret", arguments).await
    }
}
