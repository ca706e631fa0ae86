//! Whether an instance could move to another node, or why not.

use kubevirt_admission::config::ClusterConfig;
use kubevirt_admission::gates::Gate;
use kubevirt_api::names::{annotations, reasons};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{PersistentVolumeClaimInfo, VmiMigrationMethod};
use kubevirt_api::vmi::volumes::Volume;

/// Something that ties an instance to its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tie {
    /// The word for it.
    pub reason: &'static str,
    /// The sentence for it.
    pub message: String,
}

/// How an instance could move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether disks would have to be copied.
    pub method: VmiMigrationMethod,
    /// What ties it to its node; nothing if it can move.
    pub tie: Option<Tie>,
    /// What ties it to its node even if its disks are copied.
    pub with_storage: Vec<Tie>,
}

fn tie(reason: &'static str, message: impl Into<String>) -> Tie {
    Tie { reason, message: message.into() }
}

/// How an instance could move. `host_model` says whether this node's CPU has a name that others know.
pub fn verdict(vmi: &VirtualMachineInstance, config: &ClusterConfig, host_model: bool) -> Verdict {
    let (copies, disks) = volumes(vmi);
    let network = network(vmi, config);
    let cpu = cpu(vmi, host_model);
    let devices = host_devices(vmi, config);
    let encrypted = encrypted(vmi);
    let clock = clock(vmi);
    let hyperv = hyperv(vmi);
    let first = [&network, &cpu, &devices, &encrypted, &secure_execution(vmi), &clock, &hyperv, &disks]
        .into_iter()
        .find_map(Option::clone);
    let with_storage =
        [network, cpu, devices, encrypted, reservation(vmi), clock, hyperv].into_iter().flatten().collect();
    let method = if copies { VmiMigrationMethod::BlockMigration } else { VmiMigrationMethod::LiveMigration };
    Verdict { method, tie: first, with_storage }
}

/// Whether disks would have to be copied, and the first that cannot be.
fn volumes(vmi: &VirtualMachineInstance) -> (bool, Option<Tie>) {
    let status = vmi.status.as_ref();
    let moved = status.and_then(|status| status.migrated_volumes.as_deref()).unwrap_or_default();
    let mut copies = !moved.is_empty();
    for volume in vmi.spec.volumes.iter().flatten() {
        let claim = claim(vmi, &volume.name);
        let is_moved = moved.iter().any(|moved| moved.volume_name == volume.name);
        match local(volume, claim, is_moved) {
            Local::No => {}
            Local::Tied(message) => {
                return (true, Some(tie(reasons::vmi::DISKS_NOT_LIVE_MIGRATABLE, message)));
            }
            Local::Copied => copies |= !is_filesystem(vmi, &volume.name) && !is_read_only(vmi, &volume.name),
        }
    }
    (copies, None)
}

enum Local {
    No,
    Copied,
    Tied(String),
}

fn local(volume: &Volume, claim: Option<&PersistentVolumeClaimInfo>, moved: bool) -> Local {
    let named = volume.persistent_volume_claim.as_ref().map(|source| &source.claim_name);
    let named = named.or(volume.data_volume.as_ref().map(|source| &source.name));
    match (named, claim, &volume.host_disk) {
        (Some(_), Some(claim), _) if moved || is_shared(claim) => Local::No,
        (Some(name), Some(_), _) => Local::Tied(format!(
            "volume {}: claim {name} cannot be used from two nodes at once, it is not ReadWriteMany",
            volume.name
        )),
        (Some(name), None, _) => Local::Tied(format!(
            "volume {}: it is not known whether claim {name} can be used from two nodes at once",
            volume.name
        )),
        (None, Some(claim), Some(_)) if moved || is_shared(claim) => Local::No,
        (None, None, Some(disk)) if disk.shared == Some(true) => Local::No,
        (None, _, Some(_)) => Local::Tied(format!("volume {}: the host disk is not shared", volume.name)),
        (None, _, None) => Local::Copied,
    }
}

fn is_shared(claim: &PersistentVolumeClaimInfo) -> bool {
    claim.access_modes.iter().flatten().any(|mode| mode == "ReadWriteMany")
}

fn claim<'a>(vmi: &'a VirtualMachineInstance, volume: &str) -> Option<&'a PersistentVolumeClaimInfo> {
    let all = vmi.status.as_ref()?.volume_status.as_ref()?;
    all.iter().find(|status| status.name == volume)?.persistent_volume_claim_info.as_ref()
}

fn is_filesystem(vmi: &VirtualMachineInstance, volume: &str) -> bool {
    vmi.spec.domain.devices.filesystems.iter().flatten().any(|filesystem| filesystem.name == volume)
}

fn is_read_only(vmi: &VirtualMachineInstance, volume: &str) -> bool {
    let mut disks = vmi.spec.domain.devices.disks.iter().flatten().filter(|disk| disk.name == volume);
    disks.any(|disk| disk.cdrom.as_ref().is_some_and(|drive| drive.readonly.unwrap_or(true)))
}

fn network(vmi: &VirtualMachineInstance, config: &ClusterConfig) -> Option<Tie> {
    let pod = vmi.spec.networks.iter().flatten().find(|network| network.pod.is_some())?;
    let interfaces = vmi.spec.domain.devices.interfaces.as_deref().filter(|all| !all.is_empty())?;
    let reason = reasons::vmi::INTERFACE_NOT_LIVE_MIGRATABLE;
    let Some(primary) = interfaces.iter().find(|interface| interface.name == pod.name) else {
        return Some(tie(reason, format!("network {}: the pod network has no interface", pod.name)));
    };
    let allowed = || {
        let annotations = vmi.metadata.annotations.as_ref();
        annotations.is_some_and(|all| all.contains_key(annotations::ALLOW_POD_BRIDGE_LIVE_MIGRATION))
    };
    let plugin = primary.binding.as_ref().and_then(|binding| config.network_bindings()?.get(&binding.name));
    let moves = primary.masquerade.is_some()
        || primary.passt_binding.is_some()
        || (primary.bridge.is_some() && allowed())
        || plugin.is_some_and(|plugin| plugin.migration.is_some());
    let message = || {
        format!(
            "interface {}: only masquerade and bindings that say so can move the pod network",
            primary.name
        )
    };
    (!moves).then(|| tie(reason, message()))
}

fn cpu(vmi: &VirtualMachineInstance, host_model: bool) -> Option<Tie> {
    let model = vmi.spec.domain.cpu.as_ref()?.model.as_deref()?;
    let message = "the CPU model is host-model, and the CPU of this node has no name that other nodes know";
    (model == "host-model" && !host_model).then(|| tie(reasons::vmi::CPU_MODE_NOT_LIVE_MIGRATABLE, message))
}

fn host_devices(vmi: &VirtualMachineInstance, config: &ClusterConfig) -> Option<Tie> {
    let devices = &vmi.spec.domain.devices;
    let reason = reasons::vmi::HOST_DEVICE_NOT_LIVE_MIGRATABLE;
    if let Some(device) = devices.host_devices.iter().flatten().next() {
        return Some(tie(reason, format!("host device {} cannot move", device.name)));
    }
    let gpus = devices.gpus.as_deref().unwrap_or_default();
    let gpu = gpus.first()?;
    let mediated =
        config.permitted_host_devices().and_then(|permitted| permitted.mediated_devices.as_deref());
    let is_mediated = mediated
        .unwrap_or_default()
        .iter()
        .any(|mediated| gpu.device_name.as_ref().is_some_and(|name| *name == mediated.resource_name));
    let message = if gpus.len() > 1 {
        "more than one GPU cannot move".to_owned()
    } else if !config.enabled(Gate::VgpuLiveMigration) {
        format!("GPU {} cannot move: the feature gate {} is not on", gpu.name, Gate::VgpuLiveMigration.name())
    } else if !is_mediated {
        format!("GPU {} cannot move: it is not a mediated device", gpu.name)
    } else {
        return None;
    };
    Some(tie(reason, message))
}

fn encrypted(vmi: &VirtualMachineInstance) -> Option<Tie> {
    let security = vmi.spec.domain.launch_security.as_ref()?;
    if security.sev.is_some() || security.snp.is_some() {
        return Some(tie(
            reasons::vmi::SEV_NOT_LIVE_MIGRATABLE,
            "the guest's memory is encrypted by AMD SEV",
        ));
    }
    let message = "the guest is an Intel trust domain";
    security.tdx.as_ref().map(|_| tie(reasons::vmi::TDX_NOT_LIVE_MIGRATABLE, message))
}

fn secure_execution(vmi: &VirtualMachineInstance) -> Option<Tie> {
    let protected = vmi.spec.domain.launch_security.is_some();
    (protected && vmi.spec.architecture.as_deref() == Some("s390x")).then(|| {
        tie(reasons::vmi::SECURE_EXECUTION_NOT_LIVE_MIGRATABLE, "the guest runs in IBM Secure Execution")
    })
}

fn clock(vmi: &VirtualMachineInstance) -> Option<Tie> {
    let status = vmi.status.as_ref();
    let known = status.and_then(|status| status.topology_hints.as_ref()?.tsc_frequency).is_some();
    let features = vmi.spec.domain.cpu.as_ref().and_then(|cpu| cpu.features.as_deref()).unwrap_or_default();
    let fixed = features.iter().any(|feature| {
        feature.name == "invtsc"
            && feature.policy.as_ref().is_some_and(|policy| matches!(policy.as_str(), "require" | "force"))
    });
    let hyperv = vmi.spec.domain.features.as_ref().and_then(|features| features.hyperv.as_ref());
    let enlightened = hyperv.and_then(|hyperv| hyperv.reenlightenment.as_ref()?.enabled).unwrap_or(false);
    let message =
        "HyperV Reenlightenment VMIs cannot migrate when TSC Frequency is not exposed on the cluster";
    (enlightened && !fixed && !known)
        .then(|| tie(reasons::vmi::NO_TSC_FREQUENCY_NOT_LIVE_MIGRATABLE, message))
}

fn hyperv(vmi: &VirtualMachineInstance) -> Option<Tie> {
    let features = vmi.spec.domain.features.as_ref()?;
    let message = "Hyper-V features are passed through from the host";
    (features.hyperv_passthrough.as_ref()?.enabled == Some(true))
        .then(|| tie(reasons::vmi::HYPERV_PASSTHROUGH_NOT_LIVE_MIGRATABLE, message))
}

fn reservation(vmi: &VirtualMachineInstance) -> Option<Tie> {
    let mut disks = vmi.spec.domain.devices.disks.iter().flatten();
    let holder = disks.find(|disk| disk.lun.as_ref().is_some_and(|lun| lun.reservation == Some(true)))?;
    let message = format!("disk {} may hold a SCSI reservation", holder.name);
    Some(tie(reasons::vmi::PERSISTENT_RESERVATION_NOT_LIVE_MIGRATABLE, message))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::vmi;
    use super::*;

    #[test]
    fn what_ties_an_instance_to_its_node_is_named() {
        let devices = |devices: Value| json!({"domain": {"devices": devices}});
        let pod = |interface: Value| {
            json!({"networks": [{"name": "default", "pod": {}}],
                "domain": {"devices": {"interfaces": [interface]}}})
        };
        let cases = [
            (json!({"domain": {}}), ""),
            (pod(json!({"name": "default", "masquerade": {}})), ""),
            (pod(json!({"name": "default", "passtBinding": {}})), ""),
            (pod(json!({"name": "default", "bridge": {}})), "InterfaceNotLiveMigratable"),
            (pod(json!({"name": "other", "masquerade": {}})), "InterfaceNotLiveMigratable"),
            (json!({"domain": {"cpu": {"model": "host-model"}}}), "CPUModeLiveMigratable"),
            (json!({"domain": {"cpu": {"model": "Haswell"}}}), ""),
            (devices(json!({"hostDevices": [{"name": "a"}]})), "HostDeviceNotLiveMigratable"),
            (devices(json!({"gpus": [{"name": "a"}]})), "HostDeviceNotLiveMigratable"),
            (json!({"domain": {"launchSecurity": {"sev": {}}}}), "SEVNotLiveMigratable"),
            (json!({"domain": {"launchSecurity": {"tdx": {}}}}), "TDXNotLiveMigratable"),
            (
                json!({"architecture": "s390x", "domain": {"launchSecurity": {}}}),
                "SecureExecutionNotLiveMigratable",
            ),
            (
                json!({"domain": {"features": {"hyperv": {"reenlightenment": {"enabled": true}}}}}),
                "NoTSCFrequencyNotLiveMigratable",
            ),
            (
                json!({"domain": {"features": {"hypervPassthrough": {"enabled": true}}}}),
                "HypervPassthroughNotLiveMigratable",
            ),
        ];
        for (spec, expected) in cases {
            let verdict = verdict(&vmi(spec.clone(), json!({})), &ClusterConfig::default(), false);
            let found = verdict.tie.map_or("", |tie| tie.reason);
            assert_eq!(found, expected, "{spec}");
        }
    }

    #[test]
    fn disks_are_shared_copied_or_tied() {
        let claim = json!([{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}]);
        let with = |modes: Value| json!({"volumeStatus": [{"name": "a", "target": "", "persistentVolumeClaimInfo": {"accessModes": modes}}]});
        let cases = [
            (claim.clone(), with(json!(["ReadWriteMany"])), (VmiMigrationMethod::LiveMigration, true)),
            (claim.clone(), with(json!(["ReadWriteOnce"])), (VmiMigrationMethod::BlockMigration, false)),
            (claim, json!({}), (VmiMigrationMethod::BlockMigration, false)),
            (
                json!([{"name": "a", "containerDisk": {"image": "i"}}]),
                json!({}),
                (VmiMigrationMethod::BlockMigration, true),
            ),
            (
                json!([{"name": "cd", "configMap": {"name": "c"}}]),
                json!({}),
                (VmiMigrationMethod::LiveMigration, true),
            ),
            (
                json!([{"name": "a", "hostDisk": {"path": "/d", "type": "Disk"}}]),
                json!({}),
                (VmiMigrationMethod::BlockMigration, false),
            ),
            (
                json!([{"name": "a", "hostDisk": {"path": "/d", "type": "Disk", "shared": true}}]),
                json!({}),
                (VmiMigrationMethod::LiveMigration, true),
            ),
        ];
        for (volumes, status, (method, moves)) in cases {
            let disks = json!([{"name": "a", "disk": {}}, {"name": "cd", "cdrom": {}}]);
            let spec = json!({"volumes": volumes, "domain": {"devices": {"disks": disks}}});
            let verdict = verdict(&vmi(spec, status.clone()), &ClusterConfig::default(), true);
            assert_eq!((verdict.method, verdict.tie.is_none()), (method, moves), "{volumes} {status}");
        }
    }

    #[test]
    fn all_ties_count_where_disks_are_copied() {
        let spec = json!({"domain": {
            "launchSecurity": {"sev": {}},
            "devices": {"disks": [{"name": "a", "lun": {"reservation": true}}], "hostDevices": [{"name": "d"}]},
        }});
        let verdict = verdict(&vmi(spec, json!({})), &ClusterConfig::default(), true);
        let found: Vec<&str> = verdict.with_storage.iter().map(|tie| tie.reason).collect();
        let expected =
            ["HostDeviceNotLiveMigratable", "SEVNotLiveMigratable", "PersistentReservationNotLiveMigratable"];
        assert_eq!(found, expected);
    }
}
