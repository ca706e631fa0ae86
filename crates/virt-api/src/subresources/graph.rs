//! The objects that a machine or an instance depends on.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubevirt_api::names::{annotations, groups};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::InstancetypeStatusRef;
use kubevirt_api::vmi::access_credentials::AccessCredential;
use kubevirt_api::vmi::status::ChangedBlockTrackingState;
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};
use serde_json::{Value, json};

use super::failure::Failure;
use super::options::ObjectGraphOptions;

/// The label that says what an object is for.
const DEPENDENCY: &str = "kubevirt.io/dependency-type";

/// The kinds of a graph: plural, group, kind and what they are for.
const KINDS: [(&str, &str, &str, &str); 14] = [
    ("virtualmachines", groups::KUBEVIRT, "VirtualMachine", "compute"),
    ("virtualmachineinstances", groups::KUBEVIRT, "VirtualMachineInstance", "compute"),
    ("virtualmachineinstancetypes", groups::INSTANCETYPE, "VirtualMachineInstancetype", "config"),
    (
        "virtualmachineclusterinstancetypes",
        groups::INSTANCETYPE,
        "VirtualMachineClusterInstancetype",
        "config",
    ),
    ("virtualmachinepreferences", groups::INSTANCETYPE, "VirtualMachinePreference", "config"),
    ("virtualmachineclusterpreferences", groups::INSTANCETYPE, "VirtualMachineClusterPreference", "config"),
    ("datavolumes", groups::CDI, "DataVolume", "storage"),
    ("controllerrevisions", "apps", "ControllerRevision", "config"),
    ("configmaps", "", "ConfigMap", "config"),
    ("persistentvolumeclaims", "", "PersistentVolumeClaim", "storage"),
    ("serviceaccounts", "", "ServiceAccount", "config"),
    ("secrets", "", "Secret", "config"),
    ("pods", "", "Pod", "compute"),
    ("networkattachmentdefinitions", groups::NETWORK_ATTACHMENT, "NetworkAttachmentDefinition", "network"),
];

/// What is known of the namespace.
#[derive(Debug, Default)]
pub struct Facts {
    /// The pods of guests.
    pub pods: Vec<Pod>,
    /// The claims that hold the state of the machine's firmware.
    pub state_claims: Vec<PersistentVolumeClaim>,
}

/// An object and what it depends on.
#[derive(Clone, Debug, PartialEq)]
struct Node {
    name: String,
    namespace: String,
    kind: &'static (&'static str, &'static str, &'static str, &'static str),
    optional: bool,
    children: Vec<Node>,
}

impl Node {
    fn new(plural: &str, namespace: &str, name: &str) -> Option<Self> {
        let kind = KINDS.iter().find(|(known, ..)| *known == plural)?;
        let (name, namespace) = (name.to_owned(), namespace.to_owned());
        Some(Self { name, namespace, kind, optional: false, children: Vec::new() })
    }

    fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    fn with(mut self, children: impl IntoIterator<Item = Node>) -> Self {
        self.children.extend(children);
        self
    }

    fn labels(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(DEPENDENCY.to_owned(), self.kind.3.to_owned())])
    }

    fn to_value(&self) -> Value {
        let (_, group, kind, _) = self.kind;
        let mut value = json!({
            "objectReference": { "apiGroup": group, "kind": kind, "name": self.name, "namespace": self.namespace },
            "labels": self.labels(),
        });
        if self.optional {
            value["optional"] = true.into();
        }
        if !self.children.is_empty() {
            value["children"] = self.children.iter().map(Self::to_value).collect();
        }
        value
    }
}

/// The graph of a machine.
pub fn of_machine(
    vm: &VirtualMachine,
    facts: &Facts,
    options: &ObjectGraphOptions,
) -> Result<Value, Failure> {
    let (name, namespace) = named(&vm.metadata);
    let status = vm.status.as_ref();
    let mut children = Vec::new();
    if status.is_some_and(|status| status.created == Some(true)) {
        let instance = Node::new("virtualmachineinstances", namespace, name);
        children.extend(instance.map(|node| node.with(launcher(&facts.pods, namespace, name))));
    }
    if let Some(matcher) = &vm.spec.instancetype {
        let noted = status.and_then(|status| status.instancetype_ref.as_ref());
        let (kind, revision) = (matcher.kind.as_deref(), matcher.revision_name.as_deref());
        let kind = kind.unwrap_or("VirtualMachineClusterInstancetype");
        children.extend(referred(kind, matcher.name.as_deref(), revision, noted, namespace));
    }
    if let Some(matcher) = &vm.spec.preference {
        let noted = status.and_then(|status| status.preference_ref.as_ref());
        let (kind, revision) = (matcher.kind.as_deref(), matcher.revision_name.as_deref());
        let kind = kind.unwrap_or("VirtualMachineClusterPreference");
        children.extend(referred(kind, matcher.name.as_deref(), revision, noted, namespace));
    }
    let spec = vm.spec.template.spec.clone().unwrap_or_default();
    let tracking = status.and_then(|status| status.changed_block_tracking.as_ref());
    let state =
        keeps_state(&spec, tracking.map(|tracking| &tracking.state)).then(|| newest(&facts.state_claims));
    children.extend(of_spec(&spec, namespace, state.flatten()));
    finish("virtualmachines", namespace, name, children, options)
}

/// The graph of an instance.
pub fn of_instance(
    vmi: &VirtualMachineInstance,
    facts: &Facts,
    options: &ObjectGraphOptions,
) -> Result<Value, Failure> {
    let (name, namespace) = named(&vmi.metadata);
    let mut children = launcher(&facts.pods, namespace, name);
    let status = vmi.status.as_ref();
    let tracking = status.and_then(|status| status.changed_block_tracking.as_ref());
    let state =
        keeps_state(&vmi.spec, tracking.map(|tracking| &tracking.state)).then(|| newest(&facts.state_claims));
    children.extend(of_spec(&vmi.spec, namespace, state.flatten()));
    finish("virtualmachineinstances", namespace, name, children, options)
}

fn named(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> (&str, &str) {
    (metadata.name.as_deref().unwrap_or_default(), metadata.namespace.as_deref().unwrap_or_default())
}

fn finish(
    plural: &str,
    namespace: &str,
    name: &str,
    children: Vec<Node>,
    options: &ObjectGraphOptions,
) -> Result<Value, Failure> {
    let wanted = Wanted::of(options)?;
    let root = Node::new(plural, namespace, name).map(|root| root.with(wanted.among(children)));
    Ok(root.map(|root| root.to_value()).unwrap_or_default())
}

/// The pod of an instance.
fn launcher(pods: &[Pod], namespace: &str, name: &str) -> Vec<Node> {
    let owned = |pod: &&Pod| {
        let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
        let noted = pod.metadata.annotations.as_ref().and_then(|all| all.get(annotations::DOMAIN));
        owners.iter().any(|owner| owner.kind == "VirtualMachineInstance" && owner.name == name)
            || noted.is_some_and(|noted| noted == name)
    };
    let pod = pods.iter().find(owned).and_then(|pod| pod.metadata.name.as_deref());
    pod.and_then(|pod| Node::new("pods", namespace, pod)).into_iter().collect()
}

/// An instance type or preference, and the copy of it that holds.
fn referred(
    kind: &str,
    name: Option<&str>,
    revision: Option<&str>,
    noted: Option<&InstancetypeStatusRef>,
    namespace: &str,
) -> Vec<Node> {
    let plural = format!("{}s", kind.to_lowercase());
    let place = if plural.contains("cluster") { "" } else { namespace };
    let object = name.and_then(|name| Node::new(&plural, place, name)).map(Node::optional);
    let copy = match noted {
        Some(noted) => noted.controller_revision_ref.as_ref().and_then(|copy| copy.name.as_deref()),
        None => revision,
    };
    let copy = copy.filter(|name| !name.is_empty());
    object
        .into_iter()
        .chain(copy.and_then(|name| Node::new("controllerrevisions", namespace, name)))
        .collect()
}

fn of_spec(spec: &VirtualMachineInstanceSpec, namespace: &str, state: Option<&str>) -> Vec<Node> {
    let credentials = spec.access_credentials.as_deref().unwrap_or_default().iter().filter_map(secret_of);
    let mut nodes: Vec<Node> =
        credentials.filter_map(|secret| Node::new("secrets", namespace, secret)).collect();
    for volume in spec.volumes.as_deref().unwrap_or_default() {
        nodes.extend(of_volume(volume, namespace));
    }
    nodes.extend(state.and_then(|claim| Node::new("persistentvolumeclaims", namespace, claim)));
    for network in spec.networks.as_deref().unwrap_or_default() {
        let Some(multus) = network.multus.as_ref().filter(|multus| !multus.network_name.is_empty()) else {
            continue;
        };
        let (place, name) = multus.network_name.split_once('/').unwrap_or((namespace, &multus.network_name));
        nodes.extend(Node::new("networkattachmentdefinitions", place, name).map(Node::optional));
    }
    nodes
}

fn secret_of(credential: &AccessCredential) -> Option<&str> {
    let key = credential.ssh_public_key.as_ref().and_then(|key| key.source.secret.as_ref());
    let password = credential.user_password.as_ref().and_then(|password| password.source.secret.as_ref());
    key.or(password).map(|secret| secret.secret_name.as_str())
}

fn of_volume(volume: &Volume, namespace: &str) -> Vec<Node> {
    let node = |plural: &str, name: &str| Node::new(plural, namespace, name);
    if let Some(data) = &volume.data_volume {
        let claim = node("persistentvolumeclaims", &data.name);
        return node("datavolumes", &data.name).map(|node| node.with(claim)).into_iter().collect();
    }
    let claim =
        volume.persistent_volume_claim.as_ref().map(|it| ("persistentvolumeclaims", it.claim_name.as_str()));
    let map = volume.config_map.as_ref().and_then(|it| Some(("configmaps", it.name.as_deref()?)));
    let secret = volume.secret.as_ref().and_then(|it| Some(("secrets", it.secret_name.as_deref()?)));
    let account = volume
        .service_account
        .as_ref()
        .and_then(|it| Some(("serviceaccounts", it.service_account_name.as_deref()?)));
    let no_cloud =
        volume.cloud_init_no_cloud.as_ref().map(|it| [&it.secret_ref, &it.network_data_secret_ref]);
    let drive =
        volume.cloud_init_config_drive.as_ref().map(|it| [&it.secret_ref, &it.network_data_secret_ref]);
    let seeds = no_cloud.into_iter().chain(drive).flatten().flatten().map(|it| ("secrets", it.name.as_str()));
    let all = claim.into_iter().chain(map).chain(secret).chain(account).chain(seeds);
    all.filter_map(|(plural, name)| node(plural, name)).collect()
}

/// Whether the machine's firmware, TPM or changed blocks are kept in a claim of their own.
fn keeps_state(spec: &VirtualMachineInstanceSpec, tracking: Option<&ChangedBlockTrackingState>) -> bool {
    let tpm = spec.domain.devices.tpm.as_ref().is_some_and(|tpm| tpm.persistent == Some(true));
    let bootloader = spec.domain.firmware.as_ref().and_then(|firmware| firmware.bootloader.as_ref());
    let efi = bootloader.and_then(|bootloader| bootloader.efi.as_ref());
    let efi = efi.is_some_and(|efi| efi.persistent == Some(true));
    let tracked = matches!(
        tracking,
        Some(ChangedBlockTrackingState::Enabled | ChangedBlockTrackingState::Initializing)
    );
    tpm || efi || tracked
}

/// The newest claim that is to stay.
fn newest(claims: &[PersistentVolumeClaim]) -> Option<&str> {
    let kept = claims.iter().filter(|claim| claim.metadata.deletion_timestamp.is_none());
    let newest = kept.max_by_key(|claim| claim.metadata.creation_timestamp.as_ref().map(|time| time.0));
    newest.and_then(|claim| claim.metadata.name.as_deref())
}

/// Which nodes are wanted.
struct Wanted<'a> {
    optional: bool,
    selector: Option<&'a LabelSelector>,
}

impl<'a> Wanted<'a> {
    fn of(options: &'a ObjectGraphOptions) -> Result<Self, Failure> {
        let selector = options.label_selector.as_ref();
        let terms = selector.and_then(|selector| selector.match_expressions.as_deref()).unwrap_or_default();
        for term in terms {
            let values = term.values.as_deref().unwrap_or_default();
            let good = match term.operator.as_str() {
                "In" | "NotIn" => !values.is_empty(),
                "Exists" | "DoesNotExist" => values.is_empty(),
                _ => false,
            };
            if !good {
                return Err(Failure::bad_request(format!(
                    "labelSelector: {} {} {values:?} is not a requirement",
                    term.key, term.operator
                )));
            }
        }
        Ok(Self { optional: options.include_optional_nodes != Some(false), selector })
    }

    fn among(&self, nodes: Vec<Node>) -> Vec<Node> {
        let wanted = nodes.into_iter().filter(|node| self.includes(node));
        let inner = |mut node: Node| {
            node.children = self.among(std::mem::take(&mut node.children));
            node
        };
        wanted.map(inner).collect()
    }

    fn includes(&self, node: &Node) -> bool {
        let labels = node.labels();
        (self.optional || !node.optional) && self.selector.is_none_or(|selector| matches(selector, &labels))
    }
}

fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let same = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let terms = selector.match_expressions.as_deref().unwrap_or_default();
    same && terms.iter().all(|term| {
        let found = labels.get(&term.key);
        let listed = |found: &String| term.values.as_deref().unwrap_or_default().contains(found);
        match term.operator.as_str() {
            "In" => found.is_some_and(listed),
            "NotIn" => !found.is_some_and(listed),
            "Exists" => found.is_some(),
            _ => found.is_none(),
        }
    })
}

#[cfg(test)]
mod tests;
