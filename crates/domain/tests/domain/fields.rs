//! No field of a VMI is left out silently: each is used, or somebody else's business, and what is said is true.
//!
//! The fields are those of the stored CRD, so a field that is added to the API fails here until it has a place.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kubevirt_domain::{Layout, convert};
use serde_json::{Value, json};

use crate::support::{Case, cases};

/// Fields that the pod, the handler or the launcher deals with, by the start of their path.
const ELSEWHERE: &[(&str, &str)] = &[
    ("accessCredentials", "the launcher hands them to the guest agent or cloud-init"),
    ("affinity", "the scheduler"),
    ("dnsConfig", "the pod"),
    ("dnsPolicy", "the pod"),
    ("evictionStrategy", "the controller"),
    ("hostname", "the pod, DHCP and cloud-init"),
    ("livenessProbe", "the pod"),
    ("nodeSelector", "the scheduler"),
    ("priorityClassName", "the scheduler"),
    ("readinessProbe", "the pod"),
    ("resourceClaims", "the pod; the facts name the devices"),
    ("schedulerName", "the scheduler"),
    ("serviceAccountName", "the pod"),
    ("subdomain", "the pod, DHCP and cloud-init"),
    ("terminationGracePeriodSeconds", "the launcher, when it stops the guest"),
    ("tolerations", "the scheduler"),
    ("topologySpreadConstraints", "the scheduler"),
    ("utilityVolumes", "the pod"),
    ("domain.devices.autoattachInputDevice", "admission adds the device"),
    ("domain.devices.autoattachPodInterface", "admission adds the interface"),
    ("domain.devices.disks[].cdrom.readonly", "no guest writes to a CD-ROM, whatever this says"),
    ("domain.devices.disks[].tag", "cloud-init"),
    ("domain.devices.filesystems[].virtiofs", "there is no other way"),
    ("domain.devices.gpus[].tag", "cloud-init"),
    ("domain.devices.hostDevices[].tag", "cloud-init"),
    ("domain.devices.interfaces[].tag", "cloud-init"),
    ("domain.devices.interfaces[].bridge", "the pod's network; the facts name the tap"),
    ("domain.devices.interfaces[].masquerade", "the pod's network; the facts name the tap"),
    ("domain.devices.interfaces[].dhcpOptions", "DHCP"),
    ("domain.devices.interfaces[].portRanges", "the pod's network"),
    ("domain.devices.interfaces[].ports[].name", "Services"),
    ("domain.firmware.bootloader.efi.persistent", "the volume that the variables are on"),
    ("domain.firmware.kernelBoot.container.image", "the pod"),
    ("domain.firmware.kernelBoot.container.imagePullPolicy", "the pod"),
    ("domain.firmware.kernelBoot.container.imagePullSecret", "the pod"),
    ("domain.memory.reservedOverhead", "the pod and the handler"),
    ("domain.resources.overcommitGuestOverhead", "the pod"),
    ("networks[].multus", "the pod's network"),
    ("networks[].pod", "the pod's network"),
    ("networks[].resourceClaim", "the pod's network"),
    ("volumes[].cloudInitConfigDrive.", "the launcher, which makes the image"),
    ("volumes[].cloudInitNoCloud.", "the launcher, which makes the image"),
    ("volumes[].configMap.", "the pod and the launcher, which makes the image"),
    ("volumes[].containerDisk.", "the pod; the facts name the format"),
    ("volumes[].containerPath.", "the file server in the pod"),
    ("volumes[].dataVolume.name", "the pod"),
    ("volumes[].downwardAPI.", "the pod and the launcher, which makes the image"),
    ("volumes[].emptyDisk.capacity", "the launcher, which makes the image"),
    ("volumes[].ephemeral.persistentVolumeClaim", "the pod"),
    ("volumes[].hostDisk.capacity", "the launcher, which makes the image"),
    ("volumes[].hostDisk.shared", "the pod"),
    ("volumes[].hostDisk.type", "the launcher, which makes the image"),
    ("volumes[].memoryDump.", "the launcher, when it dumps memory"),
    ("volumes[].persistentVolumeClaim.claimName", "the pod"),
    ("volumes[].secret.", "the pod and the launcher, which makes the image"),
    ("volumes[].serviceAccount.", "the pod and the launcher, which makes the image"),
    ("volumes[].sysprep.", "the pod and the launcher, which makes the image"),
];

/// Values that fields are set to, by type.
fn values(kind: &str) -> Vec<Value> {
    let words = [
        "x",
        "",
        "arm64",
        "true",
        "none",
        "writeback",
        "threads",
        "native",
        "require",
        "2Mi",
        "Paused",
        "shared",
        "auto",
        "Terminate",
        "Europe/Berlin",
        "catchup",
        "discard",
        "open",
        "scsi",
        "0000:09:00.0",
        "down",
        "02:00:00:00:00:99",
        "10Mi",
        "pvpanic",
        "virtio",
        "e1000",
        "/boot/other",
        "other",
        "0-1",
    ];
    match kind {
        "boolean" => vec![json!(true), json!(false)],
        "integer" => [1, 2, 3, 7, 4096, 0].map(Value::from).to_vec(),
        "string" => words.map(Value::from).to_vec(),
        "object" => vec![json!({})],
        _ => vec![json!("4"), json!(4), json!("1Gi")],
    }
}

/// Leaves of a schema, with `[]` for the elements of a list and `{}` for the values of a map.
fn leaves(schema: &Value, path: String, found: &mut BTreeMap<String, String>) {
    let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    if let Some(fields) = schema["properties"].as_object() {
        fields.iter().for_each(|(key, field)| leaves(field, join(key), found));
    } else if schema["items"].is_object() {
        leaves(&schema["items"], path + "[]", found);
    } else if schema["additionalProperties"].is_object() {
        leaves(&schema["additionalProperties"], path + "{}", found);
    } else {
        found.insert(path, schema["type"].as_str().unwrap_or("any").to_owned());
    }
}

fn fields() -> BTreeMap<String, String> {
    let name = "../../manifests/crds/virtualmachineinstances.kubevirt.io.yaml";
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let crd: Value = serde_saphyr::from_str(&text).unwrap();
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut found = BTreeMap::new();
    leaves(spec, String::new(), &mut found);
    found
}

fn outcome(case: &Case, vmi: &Value) -> Option<Value> {
    let vmi = serde_json::from_value(vmi.clone()).ok()?;
    Some(match convert(&vmi, &case.host, &case.qemu, &Layout::default()) {
        Ok(domain) => serde_json::to_value(domain).ok()?,
        Err(error) => json!(error.to_string()),
    })
}

/// The places of a field in a tree, as pointers: one for each element of the lists on the way.
fn places(tree: &Value, path: &str) -> Vec<String> {
    let Some((step, rest)) = path.split_once('.') else {
        let step = path.trim_end_matches("[]");
        return match step.strip_suffix("{}") {
            Some(map) => ["memory", "cpu"].map(|key| format!("/{map}/{key}")).to_vec(),
            None => vec![format!("/{step}")],
        };
    };
    let below = |tree: &Value, at: String| -> Vec<String> {
        places(tree, rest).into_iter().map(|place| format!("{at}{place}")).collect()
    };
    match step.strip_suffix("[]") {
        Some(key) => {
            let items = tree[key].as_array().into_iter().flatten().enumerate();
            items.flat_map(|(index, item)| below(item, format!("/{key}/{index}"))).collect()
        }
        None => below(&tree[step], format!("/{step}")),
    }
}

/// The same tree with another value in a place, or none; objects on the way are made.
fn with(tree: &Value, place: &str, value: Option<&Value>) -> Option<Value> {
    let mut tree = tree.clone();
    let (mut at, mut steps) = (&mut tree, place.split('/').skip(1).peekable());
    while let Some(step) = steps.next() {
        if at.is_null() {
            *at = json!({});
        }
        let last = steps.peek().is_none();
        match (at.is_array(), value) {
            (true, _) => at = at.get_mut(step.parse::<usize>().ok()?)?,
            (false, None) if last => drop(at.as_object_mut()?.remove(step)),
            (false, _) => at = at.as_object_mut()?.entry(step).or_insert(Value::Null),
        }
        if last && let Some(value) = value {
            *at = value.clone();
        }
    }
    Some(tree)
}

/// Whether it makes a difference which value a field has, all else being equal.
fn matters(path: &str, values: &[Value], (case, vmi): &(Case, Value)) -> bool {
    places(&vmi["spec"], path).iter().any(|place| {
        let place = format!("/spec{place}");
        let now = vmi.pointer(&place);
        let choices = now.map(Some).into_iter().chain([None]).chain(values.iter().map(Some));
        let mut outcomes = choices.filter_map(|value| outcome(case, &with(vmi, &place, value)?));
        let first = outcomes.next();
        outcomes.any(|other| Some(other) != first)
    })
}

/// Whether a VMI has what a field is part of.
fn has_parent(path: &str, (_, vmi): &(Case, Value)) -> bool {
    let parent = |place: &String| place.rsplit_once('/').map(|(parent, _)| format!("/spec{parent}"));
    let places = places(&vmi["spec"], path);
    places.iter().filter_map(parent).any(|parent| vmi.pointer(&parent).is_some_and(|it| !it.is_null()))
}

#[test]
fn every_field_has_a_place() {
    let cases: Vec<_> = cases()
        .into_iter()
        .filter_map(|case| {
            let vmi = serde_json::to_value(&case.vmi).ok()?;
            Some((case, vmi))
        })
        .collect();
    let fields = fields();
    assert!(fields.len() > 300, "{}", fields.len());
    let mut wrong = Vec::new();
    for (path, kind) in &fields {
        let elsewhere = ELSEWHERE.iter().find(|(start, _)| {
            let rest = path.strip_prefix(start);
            rest.is_some_and(|rest| {
                start.ends_with('.') || rest.is_empty() || rest.starts_with(['.', '[', '{'])
            })
        });
        let mut values: Vec<_> = values(kind);
        if path.ends_with("[]") {
            values = values.into_iter().map(|value| json!([value])).collect();
        }
        values.truncate(if elsewhere.is_some() { 3 } else { values.len() });
        let (with_parent, others): (Vec<_>, Vec<_>) = cases.iter().partition(|case| has_parent(path, case));
        let mut tried = with_parent.into_iter().chain(others.into_iter().filter(|_| elsewhere.is_none()));
        match (elsewhere, tried.find(|case| matters(path, &values, case))) {
            (None, None) => wrong.push(format!("{path} ({kind}) changes nothing and is nobody's")),
            (Some((_, whose)), Some((case, _))) => {
                wrong.push(format!("{path} is said to be for {whose}, but matters in {}", case.name));
            }
            _ => {}
        }
    }
    let stale = ELSEWHERE.iter().filter(|(start, _)| !fields.keys().any(|path| path.starts_with(start)));
    wrong.extend(stale.map(|(start, _)| format!("{start} is no field")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
