//! The pod with the tools.

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kubevirt_api::vm::VirtualMachine;
use serde_json::{Map, Value, json};

use super::Arguments;

/// Where the files of a claim are.
pub const DIRECTORY: &str = "/disk";
/// Where a block volume is.
pub const DEVICE: &str = "/dev/vda";
/// The container with the shell.
pub const CONTAINER: &str = "libguestfs";

const KVM: &str = "devices.kubevirt.io/kvm";
const SHELL: &str = "/entrypoint.sh";
const HOME: &str = "/home/guestfs";
const APPLIANCE: &str = "/usr/local/lib/guestfs/appliance";
const TEMPORARY: &str = "/tmp/guestfs";

/// Why the pod cannot run as who is asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Root has a number already.
    #[error("cannot set {0} if root is true")]
    Root(&'static str),
    /// A group alone is not enough.
    #[error("gid requires the uid to be set: add --uid")]
    Alone,
    /// Not a number.
    #[error("--{0} {1} is not a number")]
    Number(&'static str, String),
}

/// Who the pod runs as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    root: bool,
    user: Option<i64>,
    group: Option<i64>,
    fs_group: Option<i64>,
}

impl Identity {
    /// Reads the flags.
    pub fn of(arguments: &Arguments) -> Result<Self, Error> {
        let root = arguments.root;
        let number = |flag: &'static str, text: &Option<String>| {
            let Some(text) = text.as_deref().filter(|text| !text.is_empty()) else {
                return Ok(root.then_some(0));
            };
            if root {
                return Err(Error::Root(flag));
            }
            text.parse().map(Some).map_err(|_| Error::Number(flag, text.to_owned()))
        };
        let (user, group) = (number("uid", &arguments.uid)?, number("gid", &arguments.gid)?);
        if group.is_some() && user.is_none() {
            return Err(Error::Alone);
        }
        Ok(Self { root, user, group, fs_group: number("fsGroup", &arguments.fs_group)? })
    }
}

/// The name of the pod for a claim.
pub fn name(claim: &str) -> String {
    format!("libguestfs-tools-{claim}")
}

/// The pod.
pub fn pod(
    arguments: &Arguments,
    image: &str,
    identity: &Identity,
    is_block: bool,
    vm: Option<&VirtualMachine>,
) -> Pod {
    let volume = "volume";
    let mut container = json!({
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": arguments.pull_policy,
        "command": [SHELL],
        "stdin": true,
        "tty": true,
        "env": [
            { "name": "LIBGUESTFS_BACKEND", "value": "direct" },
            { "name": "LIBGUESTFS_PATH", "value": APPLIANCE },
            { "name": "LIBGUESTFS_TMPDIR", "value": TEMPORARY },
            { "name": "HOME", "value": HOME },
        ],
        "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
        "volumeMounts": [
            { "name": "libguestfs-tmp-dir", "mountPath": TEMPORARY },
            { "name": "guestfs", "mountPath": HOME },
        ],
    });
    if is_block {
        container["volumeDevices"] = json!([{ "name": volume, "devicePath": DEVICE }]);
    } else {
        let mount = json!({ "name": volume, "mountPath": DIRECTORY });
        container["volumeMounts"].as_array_mut().into_iter().for_each(|mounts| mounts.push(mount.clone()));
        container["workingDir"] = DIRECTORY.into();
    }
    if arguments.kvm {
        container["resources"] = json!({ "limits": { KVM: "1" } });
    }
    let mut spec = json!({
        "restartPolicy": "Never",
        "securityContext": security(identity),
        "containers": [container],
        "volumes": [
            { "name": volume, "persistentVolumeClaim": { "claimName": arguments.pvc } },
            { "name": "libguestfs-tmp-dir", "emptyDir": {} },
            { "name": "guestfs", "emptyDir": {} },
        ],
    });
    let mut metadata = json!({ "name": name(&arguments.pvc) });
    if let Some(vm) = vm {
        place(vm, &mut metadata, &mut spec);
    }
    // What is written here is a pod.
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap_or_default()
}

fn security(identity: &Identity) -> Value {
    let mut context = Map::new();
    context.insert("runAsNonRoot".into(), (!identity.root).into());
    context.insert("seccompProfile".into(), json!({ "type": "RuntimeDefault" }));
    for (name, value) in
        [("runAsUser", identity.user), ("runAsGroup", identity.group), ("fsGroup", identity.fs_group)]
    {
        context.extend(value.map(|value| (name.to_owned(), value.into())));
    }
    context.into()
}

/// What says where a machine may run says so for the pod.
fn place(vm: &VirtualMachine, metadata: &mut Value, spec: &mut Value) {
    let template = &vm.spec.template;
    if let Some(labels) = template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref()) {
        metadata["labels"] = json!(labels);
    }
    let Some(instance) = &template.spec else { return };
    if let Some(tolerations) = &instance.tolerations {
        spec["tolerations"] = json!(tolerations);
    }
    if let Some(affinity) = &instance.affinity {
        spec["affinity"] = json!(affinity);
    }
    if let Some(selector) = &instance.node_selector {
        spec["nodeSelector"] = json!(selector);
    }
}

/// Whether a pod that is not over has the claim.
pub fn uses(pod: &Pod, claim: &str) -> bool {
    let over = matches!(phase(pod), "Succeeded" | "Failed");
    let mut volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    !over
        && volumes.any(|volume| {
            volume.persistent_volume_claim.as_ref().is_some_and(|source| source.claim_name == claim)
        })
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// What the pod waits for; nothing if it runs.
pub fn state(pod: &Pod) -> Result<Option<String>> {
    match phase(pod) {
        "Running" => return Ok(None),
        "Pending" => {}
        other => bail!("Pod is not in running state but got {other}"),
    }
    let status = pod.status.as_ref();
    let mut containers = status.and_then(|status| status.container_statuses.as_ref()).into_iter().flatten();
    let waiting = containers.find_map(|container| container.state.as_ref()?.waiting.clone());
    let of_container = waiting.map(|waiting| {
        let (reason, message) = (waiting.reason.unwrap_or_default(), waiting.message.unwrap_or_default());
        format!("Waiting for container {CONTAINER} still in pending, reason: {reason}, message: {message}")
    });
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let unscheduled = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    let of_pod = unscheduled
        .map(|condition| format!("Waiting for a node: {}", condition.message.clone().unwrap_or_default()));
    Ok(Some(of_container.or(of_pod).unwrap_or_else(|| "Waiting for the pod to start".to_owned())))
}

#[cfg(test)]
#[path = "pod_tests.rs"]
mod tests;
