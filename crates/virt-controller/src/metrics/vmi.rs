//! What is told of an instance.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kubevirt_admission::ClusterConfig;
use kubevirt_api::condition;
use kubevirt_api::names::conditions::vmi::LIVE_MIGRATABLE;
use kubevirt_api::names::labels::OUTDATED_LAUNCHER_IMAGE;
use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::status::{GuestOsInfo, VirtualMachineInstanceStatus, VmiPhase};
use kubevirt_api::vmi::{EvictionStrategy, VirtualMachineInstance};
use kubevirt_component::NamespacedName;
use kubevirt_component::metrics::Page;

use super::{instance_types, interfaces, list, machine, number, seconds, vendors};
use crate::context::{Stores, index};
use crate::vmi::pod::overhead;

/// What is the same for all instances.
pub struct Cluster<'a> {
    pub config: &'a ClusterConfig,
    pub launcher_image: &'a str,
}

/// What other objects say of an instance.
#[derive(Debug, Default)]
pub struct Known {
    pub pod: String,
    pub migration: String,
    pub instance_type: String,
    pub preference: String,
}

impl Known {
    /// Looks it up.
    pub fn look_up(stores: &Stores, vmi: &VirtualMachineInstance) -> Self {
        let pods = stores.pods.by(index::OWNER, &vmi.uid().unwrap_or_default());
        let node = node(vmi);
        let pod = pods.iter().find(|pod| runs_on(pod, node)).map(|pod| pod.name_any());
        let [instance_type, preference] = instance_types::of_instance(&vendors(stores), vmi);
        let pod = pod.unwrap_or_default();
        Self { pod, migration: migration_name(stores, vmi), instance_type, preference }
    }
}

fn runs_on(pod: &Pod, node: &str) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let on = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    phase == Some("Running") && on == Some(node)
}

fn migration_name(stores: &Stores, vmi: &VirtualMachineInstance) -> String {
    let state = vmi.status.as_ref().and_then(|status| status.migration_state.as_ref());
    let Some(uid) = state.and_then(|state| state.migration_uid.as_deref()) else { return String::new() };
    let all = stores.migrations.by(index::INSTANCE, &NamespacedName::of(vmi).to_string());
    let one = all.iter().find(|migration| migration.metadata.uid.as_deref() == Some(uid));
    one.map(|migration| migration.name_any()).unwrap_or_default()
}

impl Cluster<'_> {
    /// Whether a launcher that runs is not the one of this installation.
    pub fn is_outdated(&self, vmi: &VirtualMachineInstance) -> bool {
        let Some(status) = &vmi.status else { return false };
        let ended = matches!(status.phase, Some(VmiPhase::Succeeded | VmiPhase::Failed));
        let image = status.launcher_container_image_version.as_deref().unwrap_or_default();
        !ended && !image.is_empty() && image != self.launcher_image
    }

    /// Whether emptying the node of an instance does what the instance asks for.
    fn is_evictable(&self, vmi: &VirtualMachineInstance) -> bool {
        let strategy = vmi.spec.eviction_strategy.as_ref();
        let strategy = strategy.or(self.config.configuration().eviction_strategy.as_ref());
        if strategy != Some(&EvictionStrategy::LiveMigrate) {
            return true;
        }
        let conditions = vmi.status.as_ref().and_then(|status| status.conditions.as_deref());
        // Not known yet counts as no.
        condition::find(conditions, LIVE_MIGRATABLE).is_some_and(|condition| condition.status != "False")
    }
}

fn node(vmi: &VirtualMachineInstance) -> &str {
    vmi.status.as_ref().and_then(|status| status.node_name.as_deref()).unwrap_or_default()
}

/// Tells all of an instance.
pub fn tell(page: &mut Page, cluster: &Cluster<'_>, vmi: &VirtualMachineInstance, known: &Known) {
    let name = vmi.metadata.name.as_deref().unwrap_or_default();
    let namespace = vmi.metadata.namespace.as_deref().unwrap_or_default();
    let evictable = cluster.is_evictable(vmi);
    info(page, name, namespace, vmi, known, evictable);
    let place = [node(vmi), namespace, name];
    page.add(&list::VMI_NON_EVICTABLE, &place, f64::from(u8::from(!evictable)));
    if let Some(status) = &vmi.status {
        addresses(page, place, status);
        migration(page, place, status, &known.migration);
    }
    interfaces::tell(page, &list::VMI_VNIC, name, namespace, &vmi.spec);
    let noted = vmi.status.as_ref().and_then(|status| status.memory.as_ref()?.memory_overhead.as_ref());
    let bytes = noted.and_then(|quantity| quantity.bytes().ok());
    let bytes = bytes.unwrap_or_else(|| overhead(vmi, cluster.config).value());
    page.add(&list::VMI_OVERHEAD, &[namespace, name], number(bytes));
}

fn info(
    page: &mut Page,
    name: &str,
    namespace: &str,
    vmi: &VirtualMachineInstance,
    known: &Known,
    evictable: bool,
) {
    let status = vmi.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_ref());
    let phase = phase.map(|phase| phase.as_str().to_lowercase()).unwrap_or_default();
    let [os, workload, flavor] = machine::system(vmi.metadata.annotations.as_ref());
    let guest = status.and_then(|status| status.guest_os_info.as_ref());
    let said = |what: fn(&GuestOsInfo) -> Option<&String>| {
        guest.and_then(what).map(String::as_str).unwrap_or_default()
    };
    let machine = status.and_then(|status| status.machine.as_ref()?.type_.as_deref()).unwrap_or_default();
    let word = |yes: bool| if yes { "true" } else { "false" };
    let values = [
        node(vmi),
        namespace,
        name,
        &phase,
        os,
        workload,
        flavor,
        &known.instance_type,
        &known.preference,
        said(|guest| guest.kernel_release.as_ref()),
        machine,
        said(|guest| guest.machine.as_ref()),
        said(|guest| guest.name.as_ref()),
        said(|guest| guest.version_id.as_ref()),
        word(evictable),
        word(vmi.labels().contains_key(OUTDATED_LAUNCHER_IMAGE)),
        &known.pod,
    ];
    page.add(&list::VMI_INFO, &values, 1.0);
}

fn addresses(page: &mut Page, [node, namespace, name]: [&str; 3], status: &VirtualMachineInstanceStatus) {
    let interfaces = status.interfaces.as_deref().unwrap_or_default();
    let mut told: Vec<[&str; 3]> = Vec::with_capacity(interfaces.len());
    for interface in interfaces {
        let one = [&interface.name, &interface.interface_name, &interface.ip_address];
        let one = one.map(|text| text.as_deref().unwrap_or_default());
        // Each may be said only once, and what has neither name nor address says nothing.
        if one == [""; 3] || told.contains(&one) {
            continue;
        }
        let kind = if one[2].is_empty() { "SystemInterface" } else { "ExternalInterface" };
        let values = [node, namespace, name, one[0], one[1], one[2], kind];
        page.add(&list::VMI_ADDRESS, &values, 1.0);
        told.push(one);
    }
}

fn migration(
    page: &mut Page,
    [node, namespace, name]: [&str; 3],
    status: &VirtualMachineInstanceStatus,
    migration: &str,
) {
    let Some(state) = &status.migration_state else { return };
    if let Some(time) = &state.start_timestamp {
        page.add(&list::VMI_MIGRATION_START, &[node, namespace, name, migration], seconds(time));
    }
    if let Some(time) = &state.end_timestamp {
        let outcome = match (state.completed, state.failed) {
            (Some(true), Some(true)) => "failed",
            (Some(true), _) => "succeeded",
            _ => "",
        };
        page.add(&list::VMI_MIGRATION_END, &[node, namespace, name, migration, outcome], seconds(time));
    }
}
