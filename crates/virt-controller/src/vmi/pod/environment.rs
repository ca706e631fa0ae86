//! The environment of the launcher.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector};
use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Layout;

use super::instance;

/// How much launchers log; they know this themselves.
const USUAL_VERBOSITY: i64 = 2;

/// Says how much the launcher logs.
pub(super) const VERBOSITY: &str = "VIRT_LAUNCHER_LOG_VERBOSITY";

/// Label of a VMI that says how much its launcher logs.
pub(super) const VERBOSITY_LABEL: &str = "logVerbosity";

/// Environment of the container that runs the machine.
pub(super) fn of(vmi: &VirtualMachineInstance, config: &ClusterConfig) -> Vec<EnvVar> {
    let mut all = homes(vmi);
    let verbosity = verbosity(vmi, config);
    if instance::label(vmi, VERBOSITY_LABEL).is_some() || verbosity != USUAL_VERBOSITY {
        all.push(set(VERBOSITY, verbosity.to_string()));
    }
    let field =
        ObjectFieldSelector { api_version: Some("v1".to_owned()), field_path: "metadata.name".to_owned() };
    all.push(EnvVar {
        name: "POD_NAME".to_owned(),
        value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
        ..EnvVar::default()
    });
    all
}

/// Where programs beside QEMU, such as the TPM's emulator, keep their files when they are not root.
pub(super) fn homes(vmi: &VirtualMachineInstance) -> Vec<EnvVar> {
    if instance::as_root(vmi) {
        return Vec::new();
    }
    let private = Layout::default().private;
    vec![
        set("XDG_CACHE_HOME", private.clone()),
        set("XDG_CONFIG_HOME", private),
        set("XDG_RUNTIME_DIR", "/var/run".to_owned()),
    ]
}

/// How much the launcher of a VMI logs. A label that is no number is refused elsewhere.
pub(super) fn verbosity(vmi: &VirtualMachineInstance, config: &ClusterConfig) -> i64 {
    let own = instance::label(vmi, VERBOSITY_LABEL).and_then(|text| text.parse().ok());
    let developer = config.configuration().developer_configuration.as_ref();
    let cluster = developer.and_then(|developer| developer.log_verbosity.as_ref()?.virt_launcher);
    own.or(cluster).unwrap_or(USUAL_VERBOSITY)
}

/// A variable.
pub(super) fn set(name: &str, value: String) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value), ..EnvVar::default() }
}
