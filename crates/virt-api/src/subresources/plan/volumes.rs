//! Plugging volumes into a machine or an instance, and unplugging them.

use kubevirt_admission::{ClusterConfig, Gate};
use kubevirt_api::names::groups;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::disks::Disk;
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{VMI_NOT_RUNNING, is_running, name_of};
use crate::subresources::change::{Change, Target};
use crate::subresources::failure::{About, Failure};
use crate::subresources::options::{AddVolume, RemoveVolume};
use crate::subresources::seen::Seen;

const REQUESTS: &str = "/status/volumeRequests";

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// A volume to plug.
    Add {
        /// The name of the volume.
        name: String,
        /// The claim or DataVolume.
        source: String,
        /// The options, complete.
        options: Value,
    },
    /// A volume to unplug.
    Remove {
        /// The name of the volume or of what is behind it.
        name: String,
        /// The options.
        options: Value,
    },
}

/// Whether volumes can be plugged at all.
pub fn gate(config: &ClusterConfig) -> Result<(), Failure> {
    if config.enabled(Gate::HotplugVolumes) || config.enabled(Gate::DeclarativeHotplugVolumes) {
        return Ok(());
    }
    Err(Failure::bad_request(
        "Enable DeclarativeHotplugVolumes or HotplugVolumes feature gate to use this API.",
    ))
}

impl Wish {
    /// To plug a volume.
    pub fn add(options: AddVolume) -> Result<Self, Failure> {
        let missing = |what: &str| Failure::bad_request(format!("AddVolumeOptions requires {what}"));
        if options.name.is_empty() {
            return Err(missing("name to be set"));
        }
        let mut disk = options.disk.ok_or_else(|| missing("disk to not be nil"))?;
        let mut source = options.volume_source.ok_or_else(|| missing("VolumeSource to not be nil"))?;
        let behind = if let Some(volume) = &mut source.data_volume {
            volume.hotpluggable = Some(true);
            volume.name.clone()
        } else if let Some(claim) = &mut source.persistent_volume_claim {
            claim.hotpluggable = Some(true);
            claim.claim_name.clone()
        } else {
            return Err(missing("VolumeSource to name a dataVolume or a persistentVolumeClaim"));
        };
        let wrong = |error: serde_json::Error| Failure::bad_request(format!("disk: {error}"));
        match disk.as_object_mut() {
            Some(fields) => fields.insert("name".into(), options.name.clone().into()),
            None => return Err(Failure::bad_request("disk: is not an object")),
        };
        serde_json::from_value::<Disk>(disk.clone()).map_err(wrong)?;
        let mut complete = json!({ "name": options.name, "disk": disk, "volumeSource": source });
        if let Some(words) = options.dry_run {
            complete["dryRun"] = words.into();
        }
        Ok(Self::Add { name: options.name, source: behind, options: complete })
    }

    /// To unplug a volume.
    pub fn remove(options: RemoveVolume) -> Result<Self, Failure> {
        if options.name.is_empty() {
            return Err(Failure::bad_request("RemoveVolumeOptions requires name to be set"));
        }
        let mut complete = json!({ "name": options.name });
        if let Some(words) = options.dry_run {
            complete["dryRun"] = words.into();
        }
        Ok(Self::Remove { name: options.name, options: complete })
    }

    /// Whether these volumes allow it; a volume to unplug may be named by what is behind it.
    fn fit(self, volumes: &[Volume]) -> Result<Self, String> {
        match self {
            Self::Add { name, source, options } => {
                if volumes.iter().any(|volume| volume.name == name) {
                    return Err(format!(
                        "Unable to add volume [{name}] because volume with that name already exists"
                    ));
                }
                if volumes.iter().any(|volume| behind(volume) == Some(&source)) {
                    return Err(format!("Unable to add volume source [{source}] because it already exists"));
                }
                Ok(Self::Add { name, source, options })
            }
            Self::Remove { name, mut options } => {
                let found =
                    volumes.iter().find(|volume| volume.name == name || behind(volume) == Some(&name));
                let found = found
                    .ok_or_else(|| format!("Unable to remove volume [{name}] because it does not exist"))?;
                if !hotpluggable(found) {
                    return Err(format!(
                        "Unable to remove volume [{}] because it is not hotpluggable",
                        found.name
                    ));
                }
                options["name"] = found.name.clone().into();
                Ok(Self::Remove { name: found.name.clone(), options })
            }
        }
    }
}

fn behind(volume: &Volume) -> Option<&String> {
    let claim = volume.persistent_volume_claim.as_ref().map(|claim| &claim.claim_name);
    volume.data_volume.as_ref().map(|data| &data.name).or(claim)
}

fn hotpluggable(volume: &Volume) -> bool {
    let data = volume.data_volume.as_ref().and_then(|data| data.hotpluggable);
    let claim = volume.persistent_volume_claim.as_ref().and_then(|claim| claim.hotpluggable);
    data.or(claim) == Some(true)
}

/// For a machine: a request to the controller, or, where volumes are declared, a change of its template.
pub fn of_machine(vm: &Seen<VirtualMachine>, wish: Wish, config: &ClusterConfig) -> Result<Change, Failure> {
    let conflict = |why: String| Failure::conflict(About::Machine, name_of(&**vm), why);
    let wish = wish.fit(volumes(vm.spec.template.spec.as_ref())).map_err(conflict)?;
    if config.enabled(Gate::HotplugVolumes) {
        return request(vm, &wish).map_err(conflict);
    }
    Ok(written(vm, Target::Machine, "/spec/template/spec", &wish))
}

/// For an instance, which is over with it.
pub fn of_instance(
    vmi: &Seen<VirtualMachineInstance>,
    wish: Wish,
    config: &ClusterConfig,
) -> Result<Change, Failure> {
    let conflict = |why: String| Failure::conflict(About::Instance, name_of(&**vmi), why);
    if owned_by_machine(vmi) && !config.enabled(Gate::HotplugVolumes) {
        let namespace = vmi.metadata.namespace.as_deref().unwrap_or_default();
        return Err(Failure::bad_request(format!("VMI {namespace}/{} is owned by a VM", name_of(&**vmi))));
    }
    if !is_running(vmi) {
        return Err(conflict(VMI_NOT_RUNNING.into()));
    }
    let wish = wish.fit(volumes(Some(&vmi.spec))).map_err(conflict)?;
    Ok(written(vmi, Target::Instance, "/spec", &wish))
}

fn volumes(spec: Option<&VirtualMachineInstanceSpec>) -> &[Volume] {
    spec.and_then(|spec| spec.volumes.as_deref()).unwrap_or_default()
}

fn owned_by_machine(vmi: &VirtualMachineInstance) -> bool {
    let owners = vmi.metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().any(|owner| {
        let ours = owner.kind == "VirtualMachine" && owner.api_version == groups::KUBEVIRT_V1;
        ours && owner.controller == Some(true)
    })
}

/// The wish written into lists of volumes and disks, which keep all else that is in them.
fn written<K: DeserializeOwned>(seen: &Seen<K>, target: Target, spec: &str, wish: &Wish) -> Change {
    let (volumes, disks) = (format!("{spec}/volumes"), format!("{spec}/domain/devices/disks"));
    let list = |path: &str| seen.at(path).as_array().cloned().unwrap_or_default();
    let (mut all_volumes, mut all_disks) = (list(&volumes), list(&disks));
    match wish {
        Wish::Add { name, options, .. } => {
            let mut volume = options["volumeSource"].clone();
            volume["name"] = name.clone().into();
            all_volumes.push(volume);
            all_disks.push(options["disk"].clone());
        }
        Wish::Remove { name, .. } => {
            all_volumes.retain(|volume| volume["name"] != *name);
            all_disks.retain(|disk| disk["name"] != *name);
        }
    }
    Change::of(target)
        .asked_again()
        .unchanged(seen, &volumes)
        .unchanged(seen, &disks)
        .put(seen, &volumes, all_volumes.into())
        .put(seen, &disks, all_disks.into())
}

/// The wish as a request beside those that are not yet carried out.
fn request(vm: &Seen<VirtualMachine>, wish: &Wish) -> Result<Change, String> {
    let mut requests = vm.at(REQUESTS).as_array().cloned().unwrap_or_default();
    let is = |request: &Value, kind: &str, name: &str| request[kind]["name"] == name;
    let asked = |kind: &str, name: &str| requests.iter().any(|request| is(request, kind, name));
    match wish {
        Wish::Add { name, options, .. } => {
            if asked("addVolumeOptions", name) {
                return Err(format!("add volume request for volume [{name}] already exists"));
            }
            if asked("removeVolumeOptions", name) {
                return Err(format!(
                    "unable to add volume since a remove volume request for volume [{name}] already exists and is \
                     still being processed"
                ));
            }
            requests.push(json!({ "addVolumeOptions": options }));
        }
        Wish::Remove { name, options } => {
            if asked("removeVolumeOptions", name) {
                return Err(format!(
                    "a remove volume request for volume [{name}] already exists and is still being processed"
                ));
            }
            requests.retain(|request| !is(request, "addVolumeOptions", name));
            requests.push(json!({ "removeVolumeOptions": options }));
        }
    }
    let change = Change::of(Target::MachineStatus).asked_again();
    if vm.at("/status").is_null() {
        return Ok(change.first_status(vm, json!({ "volumeRequests": requests })));
    }
    Ok(change.unchanged(vm, REQUESTS).put(vm, REQUESTS, requests.into()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::seen;
    use super::*;
    use crate::subresources::change::Race;

    fn gates(on: &[&str], off: &[&str]) -> ClusterConfig {
        let developer = json!({ "featureGates": on, "disabledFeatureGates": off });
        let kubevirt = json!({ "spec": { "configuration": { "developerConfiguration": developer } } });
        ClusterConfig::of(&serde_json::from_value(kubevirt).unwrap())
    }

    fn add(name: &str, claim: &str) -> Wish {
        let source = json!({ "persistentVolumeClaim": { "claimName": claim } });
        let options = json!({ "name": name, "disk": { "disk": { "bus": "scsi" } }, "volumeSource": source });
        Wish::add(serde_json::from_value(options).unwrap()).unwrap()
    }

    fn remove(name: &str) -> Wish {
        Wish::remove(RemoveVolume { name: name.into(), ..RemoveVolume::default() }).unwrap()
    }

    /// With a disk that cannot be unplugged, one that can, and fields that no type of ours knows.
    fn spec() -> Value {
        json!({
            "domain": { "devices": { "disks": [{ "name": "root", "new": 1 }, { "name": "data" }] } },
            "volumes": [
                { "name": "root", "containerDisk": { "image": "i" }, "new": 1 },
                { "name": "data", "dataVolume": { "name": "dv", "hotpluggable": true } },
            ],
        })
    }

    fn vm(status: Value) -> Seen<VirtualMachine> {
        seen(json!({ "spec": { "template": { "spec": spec() } }, "status": status }))
    }

    fn vmi(owner: Value) -> Seen<VirtualMachineInstance> {
        seen(
            json!({ "metadata": { "ownerReferences": owner }, "spec": spec(), "status": { "phase": "Running" } }),
        )
    }

    fn words(failure: Failure) -> String {
        format!("{} {}", failure.code, failure.message.rsplit("\": ").next().unwrap())
    }

    #[test]
    fn a_wish_must_be_whole() {
        let claim = json!({ "persistentVolumeClaim": { "claimName": "c" } });
        let cases = [
            (json!({}), "name to be set"),
            (json!({ "name": "a" }), "disk to not be nil"),
            (json!({ "name": "a", "disk": {} }), "VolumeSource to not be nil"),
            (json!({ "name": "a", "disk": {}, "volumeSource": {} }), "to name a dataVolume"),
            (json!({ "name": "a", "disk": 3, "volumeSource": claim }), "is not an object"),
            (json!({ "name": "a", "disk": { "bootOrder": "x" }, "volumeSource": claim }), "disk: "),
        ];
        for (options, expected) in cases {
            let failure = Wish::add(serde_json::from_value(options).unwrap()).unwrap_err();
            assert!(failure.code == 400 && failure.message.contains(expected), "{}", failure.message);
        }
        assert_eq!(Wish::remove(RemoveVolume::default()).unwrap_err().code, 400);
        let Wish::Add { options, .. } = add("a", "c") else { panic!() };
        assert_eq!(options["disk"]["name"], "a");
        assert_eq!(options["volumeSource"]["persistentVolumeClaim"]["hotpluggable"], true);
    }

    #[test]
    fn volumes_are_declared_in_the_template() {
        let change = of_machine(&vm(json!({})), add("new", "c"), &gates(&[], &[])).unwrap();
        assert_eq!((change.target, change.race), (Target::Machine, Race::Verbatim));
        let ops: Vec<_> = change
            .operations
            .iter()
            .map(|it| (it["op"].as_str().unwrap(), it["path"].as_str().unwrap()))
            .collect();
        let (volumes, disks) = ("/spec/template/spec/volumes", "/spec/template/spec/domain/devices/disks");
        assert_eq!(ops, [("test", volumes), ("test", disks), ("replace", volumes), ("replace", disks)]);
        let volumes = &change.operations[2]["value"];
        assert_eq!((&volumes[0], &volumes[2]["name"]), (&spec()["volumes"][0], &json!("new")));
        // By what is behind it, too.
        let change = of_machine(&vm(json!({})), remove("dv"), &gates(&[], &[])).unwrap();
        assert_eq!(change.operations[2]["value"], json!([spec()["volumes"][0]]));
        assert_eq!(change.operations[3]["value"], json!([{ "name": "root", "new": 1 }]));
    }

    #[test]
    fn or_the_controller_is_asked() {
        let old = gates(&["HotplugVolumes"], &[]);
        let change = of_machine(&vm(json!({ "created": true })), add("new", "c"), &old).unwrap();
        assert_eq!((change.target, change.race), (Target::MachineStatus, Race::Verbatim));
        assert_eq!(change.operations[0], json!({ "op": "test", "path": REQUESTS, "value": null }));
        assert_eq!(change.operations[1]["value"][0]["addVolumeOptions"]["name"], "new");
        // A status that somebody else gives it in between is not overwritten.
        let first = of_machine(&vm(Value::Null), add("new", "c"), &old).unwrap().operations;
        assert_eq!(first[0], json!({ "op": "test", "path": "/status", "value": null }));
        assert_eq!(first[1]["value"]["volumeRequests"][0]["addVolumeOptions"]["name"], "new");
        let adding = json!({ "volumeRequests": [{ "addVolumeOptions": { "name": "new", "disk": { "name": "new" }, "volumeSource": {} } }] });
        let removing = json!({ "volumeRequests": [{ "removeVolumeOptions": { "name": "data" } }] });
        let cases = [
            (&adding, add("new", "c"), "409 add volume request for volume [new] already exists"),
            (
                &removing,
                remove("data"),
                "409 a remove volume request for volume [data] already exists and is still being processed",
            ),
        ];
        for (status, wish, expected) in cases {
            assert_eq!(words(of_machine(&vm(status.clone()), wish, &old).unwrap_err()), expected);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let cases = [
            (
                add("root", "c"),
                "409 Unable to add volume [root] because volume with that name already exists",
            ),
            (add("x", "dv"), "409 Unable to add volume source [dv] because it already exists"),
            (remove("x"), "409 Unable to remove volume [x] because it does not exist"),
            (remove("root"), "409 Unable to remove volume [root] because it is not hotpluggable"),
        ];
        for (wish, expected) in cases {
            let config = gates(&[], &[]);
            assert_eq!(words(of_machine(&vm(json!({})), wish.clone(), &config).unwrap_err()), expected);
            assert_eq!(words(of_instance(&vmi(json!([])), wish, &config).unwrap_err()), expected);
        }
        assert!(gate(&gates(&[], &["DeclarativeHotplugVolumes"])).is_err());
        assert!(gate(&gates(&["HotplugVolumes"], &["DeclarativeHotplugVolumes"])).is_ok());
    }

    #[test]
    fn an_instance_of_a_machine_is_changed_through_the_machine() {
        let owner = json!([{ "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "vm", "uid": "1", "controller": true }]);
        let failure = of_instance(&vmi(owner.clone()), add("new", "c"), &gates(&[], &[])).unwrap_err();
        assert_eq!((failure.code, failure.message.as_str()), (400, "VMI default/vm is owned by a VM"));
        assert!(of_instance(&vmi(owner), add("new", "c"), &gates(&["HotplugVolumes"], &[])).is_ok());
        let change = of_instance(&vmi(json!([])), add("new", "c"), &gates(&[], &[])).unwrap();
        assert_eq!(
            (change.target, change.operations[0]["path"].as_str()),
            (Target::Instance, Some("/spec/volumes"))
        );
        let empty: Seen<VirtualMachineInstance> =
            seen(json!({ "spec": { "domain": { "devices": {} } }, "status": { "phase": "Running" } }));
        let change = of_instance(&empty, add("new", "c"), &gates(&[], &[])).unwrap();
        assert_eq!(
            (&change.operations[0]["value"], &change.operations[2]["op"]),
            (&Value::Null, &json!("add"))
        );
        let off: Seen<VirtualMachineInstance> =
            seen(json!({ "spec": spec(), "status": { "phase": "Failed" } }));
        assert_eq!(
            words(of_instance(&off, add("new", "c"), &gates(&[], &[])).unwrap_err()),
            "409 VMI is not running"
        );
    }
}
