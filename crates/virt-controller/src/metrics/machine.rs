//! What is told of a machine.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kubevirt_admission::instancetype::expand;
use kubevirt_api::names::annotations;
use kubevirt_api::names::conditions::vm as condition;
use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vm::status::PrintableStatus;
use kubevirt_api::vm::{DataVolumeTemplate, VirtualMachine};
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_component::NamespacedName;
use kubevirt_component::metrics::{Metric, Page};

use super::labels::{self, Shown};
use super::{instance_types, interfaces, list, number, resources, seconds, vendors};
use crate::context::Stores;
use crate::vm::observe::objects;

/// Tells all of a machine.
pub fn tell(page: &mut Page, stores: &Stores, shown: &Shown, vm: &VirtualMachine) {
    let name = vm.metadata.name.as_deref().unwrap_or_default();
    let namespace = vm.metadata.namespace.as_deref().unwrap_or_default();
    let [instance_type, preference] = instance_types::of_machine(&vendors(stores), vm);
    info(page, name, namespace, vm, &instance_type, &preference);
    times(page, name, namespace, vm);
    labels::tell(page, shown, name, namespace, vm);
    let Some(spec) = &vm.spec.template.spec else { return };
    interfaces::tell(page, &list::VM_VNIC, name, namespace, spec);
    disks(page, name, namespace, vm, |claim| stores.claims.get(&NamespacedName::new(namespace, claim)));
    // Only who refers to others has to be put together first.
    if instance_type.is_empty() && preference.is_empty() {
        resources::tell(page, name, namespace, &spec.domain);
    } else {
        let expanded =
            expand::template(&objects(stores, vm, &[]), vm).ok().and_then(|template| template.spec);
        resources::tell(page, name, namespace, &expanded.as_ref().unwrap_or(spec).domain);
    }
}

/// What a machine is and the state it is in.
pub fn info(
    page: &mut Page,
    name: &str,
    namespace: &str,
    vm: &VirtualMachine,
    instance_type: &str,
    preference: &str,
) {
    let template = &vm.spec.template;
    let marks = template.metadata.as_ref().and_then(|metadata| metadata.annotations.as_ref());
    let [os, workload, flavor] = system(marks);
    let machine = template.spec.as_ref().and_then(|spec| spec.domain.machine.as_ref());
    let machine = machine.and_then(|machine| machine.type_.as_deref()).unwrap_or_default();
    let status = status(vm);
    let word = status.map(|status| status.as_str().to_lowercase()).unwrap_or_default();
    let group = Group::of(status).map_or("<unknown>", Group::name);
    let values =
        [name, namespace, os, workload, flavor, machine, instance_type, preference, word.as_str(), group];
    page.add(&list::VM_INFO, &values, 1.0);
}

/// What annotations say of the system in a guest: its name, what it is for, how large it is.
pub fn system(annotations: Option<&BTreeMap<String, String>>) -> [&str; 3] {
    let value =
        |name: &str| annotations.and_then(|all| all.get(name)).map(String::as_str).unwrap_or_default();
    [annotations::VM_OS, annotations::VM_WORKLOAD, annotations::VM_FLAVOR].map(value)
}

fn status(vm: &VirtualMachine) -> Option<&PrintableStatus> {
    vm.status.as_ref().and_then(|status| status.printable_status.as_ref())
}

/// What states have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Starting,
    Running,
    Migrating,
    NonRunning,
    Error,
}

impl Group {
    /// The group of a state; none of one that nobody knows.
    pub fn of(status: Option<&PrintableStatus>) -> Option<Self> {
        use PrintableStatus as Status;
        match status? {
            Status::Provisioning | Status::Starting | Status::WaitingForVolumeBinding => Some(Self::Starting),
            Status::Running => Some(Self::Running),
            Status::Migrating => Some(Self::Migrating),
            Status::Stopped | Status::Paused | Status::Stopping | Status::Terminating => {
                Some(Self::NonRunning)
            }
            Status::CrashLoopBackOff
            | Status::Unknown
            | Status::ErrorUnschedulable
            | Status::ErrImagePull
            | Status::ImagePullBackOff
            | Status::ErrorPvcNotFound
            | Status::DataVolumeError => Some(Self::Error),
            Status::WaitingForReceiver | Status::Other(_) => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Migrating => "migrating",
            Self::NonRunning => "non_running",
            Self::Error => "error",
        }
    }

    const TIMES: [(Self, Metric); 5] = [
        (Self::Starting, list::VM_STARTING),
        (Self::Running, list::VM_RUNNING),
        (Self::Migrating, list::VM_MIGRATING),
        (Self::NonRunning, list::VM_NON_RUNNING),
        (Self::Error, list::VM_ERROR),
    ];
}

/// When a machine was created, and since when it is in its state.
pub fn times(page: &mut Page, name: &str, namespace: &str, vm: &VirtualMachine) {
    if let Some(time) = &vm.metadata.creation_timestamp {
        page.add(&list::VM_CREATED, &[name, namespace], seconds(time));
    }
    const TOLD: [&str; 3] = [condition::READY, condition::FAILURE, condition::PAUSED];
    let conditions = vm.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let told = conditions.iter().filter(|condition| TOLD.contains(&condition.type_.as_str()));
    let since = told.filter_map(|condition| condition.last_transition_time.as_ref()).map(seconds);
    // As KubeVirt has it for a machine without conditions.
    let since = since.fold(-1.0, f64::max);
    let group = Group::of(status(vm)).unwrap_or(Group::Error);
    for (one, metric) in &Group::TIMES {
        page.add(metric, &[name, namespace], if *one == group { since } else { 0.0 });
    }
}

/// The sizes of claims that are disks of a machine.
pub fn disks<C>(
    page: &mut Page,
    name: &str,
    namespace: &str,
    vm: &VirtualMachine,
    claim: impl Fn(&str) -> Option<C>,
) where
    C: AsRef<PersistentVolumeClaim>,
{
    let volumes = vm.spec.template.spec.as_ref().and_then(|spec| spec.volumes.as_deref());
    for volume in volumes.unwrap_or_default() {
        let Some((claim_name, from_data_volume)) = claim_of(volume) else { continue };
        let Some(claim) = claim(claim_name) else { continue };
        let spec = claim.as_ref().spec.as_ref();
        let asked = from_data_volume.then(|| template_size(vm, claim_name)).flatten();
        let of_claim = || spec?.resources.as_ref()?.requests.as_ref()?.get("storage")?.bytes().ok();
        let mode = spec.and_then(|spec| spec.volume_mode.as_deref()).unwrap_or_default();
        let size = asked.or_else(of_claim).unwrap_or_default();
        page.add(&list::VM_DISK, &[name, namespace, claim_name, mode, &volume.name], number(size));
    }
}

fn claim_of(volume: &Volume) -> Option<(&str, bool)> {
    let claim = volume.persistent_volume_claim.as_ref().map(|claim| (claim.claim_name.as_str(), false));
    claim.or_else(|| volume.data_volume.as_ref().map(|data| (data.name.as_str(), true)))
}

/// What the template of a data volume asks for, which is less than its claim where that has a file system.
fn template_size(vm: &VirtualMachine, name: &str) -> Option<i64> {
    let templates = vm.spec.data_volume_templates.as_deref()?;
    let named = |template: &&DataVolumeTemplate| {
        template.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()) == Some(name)
    };
    let template = templates.iter().find(named)?;
    let spec = &template.spec;
    let of_claim = spec.pvc.as_ref().and_then(|claim| claim.resources.as_ref());
    let resources = of_claim.or_else(|| spec.storage.as_ref().and_then(|storage| storage.resources.as_ref()));
    resources?.requests.as_ref()?.get("storage")?.bytes().ok()
}
