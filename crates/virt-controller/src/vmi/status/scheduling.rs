//! An instance whose pod is on its way: to the node, or to failure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kubevirt_api::names::reasons::vmi as reasons;
use kubevirt_api::names::{annotations, labels};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{MigrationTransport, VirtualMachineInstanceStatus, VmiPhase};
use kubevirt_component::events::Kind;

use crate::vmi::observe::Observed;
use crate::vmi::plan::{Event, Plan, Trouble};
use crate::vmi::{conditions, network, pods, volume_status};

/// Hands the instance over to its node when the pod is ready for it.
pub fn update(observed: &Observed, vmi: &mut VirtualMachineInstance, plan: &mut Plan, now: Timestamp) {
    let status = vmi.status.get_or_insert_default();
    conditions::provisioning(false, &mut status.conditions, now);
    let Some(pod) = observed.launcher() else {
        fail(observed, None, status, plan);
        return;
    };
    conditions::scheduled(observed, &mut status.conditions);
    if let Some((reason, message)) = pods::image_trouble(pod) {
        plan.trouble = Some(Trouble::waiting(reason, message));
    }
    if pods::is_down_or_leaving(pod) {
        fail(observed, Some(pod), status, plan);
    } else if pods::can_take_over(pod) && !observed.is_deleted() {
        match check_resources(observed, pod) {
            Ok(()) => hand_over(observed, vmi, pod, plan),
            Err(trouble) => {
                let (reason, message) = (reasons::FAILED_GUARANTEE_RESOURCES, trouble.message.clone());
                plan.events.push(Event { kind: Kind::Warning, reason, message });
                plan.trouble = Some(trouble);
            }
        }
    } else {
        // Said at the hand-over; on the way there it is not worth a write.
        status.active_pods = observed.status().active_pods.clone();
        status.qos_class = observed.status().qos_class.clone();
    }
}

/// Dedicated CPUs are only given to pods that get all that they ask for.
fn check_resources(observed: &Observed, pod: &Pod) -> Result<(), Trouble> {
    let cpu = observed.vmi.spec.domain.cpu.as_ref();
    let is_dedicated = cpu.is_some_and(|cpu| cpu.dedicated_cpu_placement == Some(true));
    if is_dedicated && pods::qos_class(pod) != Some("Guaranteed") {
        let message = "failed to guarantee pod resources";
        return Err(Trouble::waiting(reasons::FAILED_GUARANTEE_RESOURCES, message));
    }
    Ok(())
}

fn hand_over(observed: &Observed, vmi: &mut VirtualMachineInstance, pod: &Pod, plan: &mut Plan) {
    let node = pods::node(pod).to_owned();
    vmi.labels_mut().insert(labels::NODE_NAME.to_owned(), node.clone());
    let status = vmi.status.get_or_insert_default();
    status.phase = Some(VmiPhase::Scheduled);
    status.node_name = Some(node);
    status.qos_class = pods::qos_class(pod).map(str::to_owned);
    volume_status::update(observed, pod, status, plan);
    network::update(&observed.vmi, pod, status);
    if pod.annotations().contains_key(annotations::MIGRATION_TRANSPORT_UNIX) {
        status.migration_transport = Some(MigrationTransport::Unix);
    }
    if observed.vmi.spec.domain.devices.autoattach_vsock == Some(true) {
        status.vsockcid.get_or_insert(observed.vsock_id);
    }
}

/// Without a pod there is nothing to hand over. A receiver may still get another pod.
fn fail(observed: &Observed, pod: Option<&Pod>, status: &mut VirtualMachineInstanceStatus, plan: &mut Plan) {
    if observed.is_receiver() {
        status.phase = Some(VmiPhase::WaitingForSync);
        return;
    }
    status.phase = Some(VmiPhase::Failed);
    // Who deletes an instance has its pod ended, and need not hear how.
    let pod = pod.filter(|_| !observed.is_deleted());
    if let Some((reason, message)) = pod.and_then(pods::failure) {
        plan.trouble = Some(Trouble::waiting(&reason, message));
        status.reason = Some(reason);
    }
}
