//! What admission accepts, as KubeVirt does, and this program cannot run: it ends in the VMI's conditions, in words.

use kubevirt_admission::ClusterConfig;
use kubevirt_api::kubevirt::devices::PermittedHostDevices;
use kubevirt_api::names::annotations;
use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Unsupported;

use super::error::NoPod;
use super::surroundings::Surroundings;
use super::{environment, instance, networks, text};

/// Refuses what cannot be run, all of it at once.
pub(super) fn check(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> Result<(), NoPod> {
    let mut problems = Problems(Vec::new());
    sidecars(vmi, around.config, &mut problems);
    volumes(vmi, &mut problems);
    host_devices(vmi, around.config, &mut problems);
    numbers(vmi, &mut problems);
    if let Some(name) = hypervisor(around.config) {
        problems.add(
            "spec.domain",
            format!("the cluster is set to the hypervisor {name:?}, and only kvm is known"),
        );
    }
    if problems.0.is_empty() { Ok(()) } else { Err(NoPod::Unsupported(problems.0)) }
}

struct Problems(Vec<Unsupported>);

impl Problems {
    fn add(&mut self, field: impl Into<String>, reason: impl Into<String>) {
        self.0.push(Unsupported { field: field.into(), reason: reason.into() });
    }
}

/// Programs of others that would be handed the machine's description in libvirt's words.
fn sidecars(vmi: &VirtualMachineInstance, config: &ClusterConfig, problems: &mut Problems) {
    let hooks = instance::annotation(vmi, annotations::HOOK_SIDECARS).unwrap_or_default().trim();
    if !["", "[]", "null"].contains(&hooks) {
        let field = format!("metadata.annotations[{}]", annotations::HOOK_SIDECARS);
        problems.add(field, "hook sidecars change the XML of a libvirt domain, and here there is none");
    }
    for (index, interface) in instance::interfaces(vmi).enumerate() {
        let field = format!("spec.domain.devices.interfaces[{index}].binding");
        match networks::plugin(config, interface) {
            Ok(Some(plugin)) if text(&plugin.sidecar_image).is_some() => problems.add(
                field,
                "the plugin's sidecar changes the XML of a libvirt domain, and here there is none",
            ),
            Err(error) => problems.add(field, error.to_string()),
            Ok(_) => {}
        }
    }
}

fn volumes(vmi: &VirtualMachineInstance, problems: &mut Problems) {
    for (index, volume) in instance::volumes(vmi).enumerate() {
        let field = |name: &str| format!("spec.volumes[{index}].{name}");
        if volume.container_path.is_some() {
            problems.add(field("containerPath"), "paths of the launcher's container cannot be shared yet");
        }
        if volume.sysprep.as_ref().is_some_and(|it| it.secret.is_none() && it.config_map.is_none()) {
            problems.add(field("sysprep"), "it names neither a Secret nor a ConfigMap");
        }
        if volume.ephemeral.as_ref().is_some_and(|it| it.persistent_volume_claim.is_none()) {
            problems.add(field("ephemeral.persistentVolumeClaim"), "it names no claim");
        }
    }
}

/// Devices that the cluster does not give away. A cluster without a list leaves that to whoever offers them.
fn host_devices(vmi: &VirtualMachineInstance, config: &ClusterConfig, problems: &mut Problems) {
    let Some(permitted) = config.permitted_host_devices() else { return };
    let devices = &vmi.spec.domain.devices;
    let gpus = devices.gpus.iter().flatten().map(|it| ("gpus", &it.device_name, &it.claim_name));
    let others = devices.host_devices.iter().flatten();
    let others = others.map(|it| ("hostDevices", &it.device_name, &it.claim_name));
    for (list, name, claim) in gpus.chain(others) {
        let Some(name) = text(name).filter(|name| claim.is_none() && !permits(permitted, name)) else {
            continue;
        };
        let field = format!("spec.domain.devices.{list}");
        problems.add(field, format!("{name} is not among the cluster's permitted host devices"));
    }
}

fn permits(permitted: &PermittedHostDevices, name: &str) -> bool {
    let pci = permitted.pci_host_devices.iter().flatten().map(|device| &device.resource_name);
    let mediated = permitted.mediated_devices.iter().flatten().map(|device| &device.resource_name);
    let usb = permitted.usb.iter().flatten().map(|device| &device.resource_name);
    pci.chain(mediated).chain(usb).any(|resource| resource == name)
}

/// Numbers that are none.
fn numbers(vmi: &VirtualMachineInstance, problems: &mut Problems) {
    if let Some(text) = instance::label(vmi, environment::VERBOSITY_LABEL)
        && text.parse::<u32>().is_err()
    {
        let field = format!("metadata.labels[{}]", environment::VERBOSITY_LABEL);
        problems.add(field, format!("{text:?} is no number"));
    }
    let domain = &vmi.spec.domain;
    let resources = domain.resources.as_ref();
    let requests = resources.and_then(|resources| resources.requests.as_ref()).into_iter().flatten();
    let limits = resources.and_then(|resources| resources.limits.as_ref()).into_iter().flatten();
    let listed = requests.map(|it| ("requests", it)).chain(limits.map(|it| ("limits", it)));
    let mut all: Vec<_> =
        listed.map(|(list, (name, it))| (format!("spec.domain.resources.{list}.{name}"), it)).collect();
    let memory = domain.memory.as_ref();
    let guest = memory.and_then(|memory| memory.guest.as_ref());
    let added = memory.and_then(|memory| memory.reserved_overhead.as_ref()?.added_overhead.as_ref());
    all.extend(guest.map(|it| ("spec.domain.memory.guest".to_owned(), it)));
    all.extend(added.map(|it| ("spec.domain.memory.reservedOverhead.addedOverhead".to_owned(), it)));
    for (field, quantity) in all {
        if quantity.amount().is_err() {
            problems.add(field, format!("{:?} is no quantity", quantity.0));
        }
    }
}

/// A hypervisor that the cluster is set to and that is not ours.
fn hypervisor(config: &ClusterConfig) -> Option<String> {
    let first = config.configuration().hypervisors.as_ref()?.first()?;
    text(&first.name).filter(|name| name != "kvm")
}
