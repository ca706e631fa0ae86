//! Carries a plan out.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodCondition, PodStatus};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kubevirt_api::names::events::objects;
use kubevirt_api::names::labels;
use kubevirt_api::names::reasons::vmi as reasons;
use kubevirt_component::events::Kind;
use kubevirt_component::patch;
use serde_json::{Value, json};

use super::observe::Observed;
use super::plan::{NewPod, Role, Step, Trouble};
use super::rendering;
use crate::context::{Context, controller, trim};

/// Does one thing, and adds what is learnt from it to what is known.
pub async fn carry_out(context: &Context, observed: &mut Observed, step: &Step) -> Result<(), Trouble> {
    match step {
        Step::LookForPods => look_for_pods(context, observed).await,
        Step::CreateStateClaim(claim) => create_claim(context, observed, claim).await,
        Step::AdoptStateClaim(claim) => adopt_claim(context, observed, claim).await,
        Step::DeleteStateClaim(claim) => delete_claim(context, claim).await,
        Step::CreatePod(new) => create_pod(context, observed, new).await,
        Step::DeletePod { pod, role } => delete_pod(context, observed, pod, *role).await,
        Step::MarkPod { pod, labels, annotations, condition } => {
            let change = json!({"metadata": {"labels": labels, "annotations": annotations}});
            unless_gone(mark_pod(context, pod, change, condition.as_deref()).await, reasons::FAILED_POD_PATCH)
        }
    }
}

/// Marks and the condition go in one request, since labels and annotations can be written with the status of a pod.
async fn mark_pod(
    context: &Context,
    pod: &Pod,
    mut change: Value,
    condition: Option<&PodCondition>,
) -> kube::Result<()> {
    let (api, name) = (context.api::<Pod>(&namespace(pod)), pod.name_any());
    let Some(condition) = condition else {
        return patch::overwrite(&api, &name, &Patch::Merge(change)).await;
    };
    change["status"] = json!({"conditions": [condition]});
    // The kubelet writes to the same list. This way of patching finds entries by their type.
    patch::overwrite_status(&api, &name, &Patch::Strategic(change)).await
}

fn namespace(object: &impl ResourceExt) -> String {
    object.namespace().unwrap_or_default()
}

fn unless_gone<T>(outcome: kube::Result<T>, reason: &str) -> Result<(), Trouble> {
    match outcome {
        Ok(_) => Ok(()),
        Err(error) if patch::is_gone(&error) => Ok(()),
        Err(error) => Err(Trouble::passing(reason, error.to_string())),
    }
}

async fn look_for_pods(context: &Context, observed: &mut Observed) -> Result<(), Trouble> {
    let uid = observed.vmi.uid().unwrap_or_default();
    let selector = ListParams::default().labels(&format!("{}={uid}", labels::CREATED_BY));
    let api = context.api::<Pod>(&namespace(observed.vmi.as_ref()));
    let found = api.list(&selector).await;
    let found = found.map_err(|error| Trouble::passing(reasons::FAILED_HAND_OVER, error.to_string()))?;
    let own = found.items.into_iter().filter(|pod| controller(pod).is_some_and(|owner| owner.uid == uid));
    observed.pods = own.map(trimmed).collect();
    observed.pods_confirmed = true;
    Ok(())
}

fn trimmed(mut pod: Pod) -> Arc<Pod> {
    pod.metadata.managed_fields = None;
    trim::pod(&mut pod);
    Arc::new(pod)
}

async fn create_claim(
    context: &Context,
    observed: &mut Observed,
    claim: &PersistentVolumeClaim,
) -> Result<(), Trouble> {
    let api = context.api::<PersistentVolumeClaim>(&namespace(claim));
    let made = match api.create(&PostParams::default(), claim).await {
        Err(error) if patch::is_taken(&error) => api.get(&claim.name_any()).await,
        outcome => outcome,
    };
    let failed =
        |error: kube::Error| Trouble::passing(reasons::FAILED_BACKEND_STORAGE_CREATE, error.to_string());
    observed.storage.state = Some(Arc::new(made.map_err(failed)?));
    Ok(())
}

async fn adopt_claim(
    context: &Context,
    observed: &Observed,
    claim: &PersistentVolumeClaim,
) -> Result<(), Trouble> {
    let marks = BTreeMap::from([(labels::PERSISTENT_STATE_FOR, observed.vmi.name_any())]);
    let change = Patch::Merge(json!({"metadata": {"labels": marks}}));
    let api = context.api::<PersistentVolumeClaim>(&namespace(claim));
    let outcome = api.patch(&claim.name_any(), &PatchParams::default(), &change).await;
    unless_gone(outcome, reasons::FAILED_BACKEND_STORAGE_CREATE)
}

async fn delete_claim(context: &Context, claim: &PersistentVolumeClaim) -> Result<(), Trouble> {
    let api = context.api::<PersistentVolumeClaim>(&namespace(claim));
    let outcome = api.delete(&claim.name_any(), &exactly(claim.uid())).await;
    unless_gone(outcome, reasons::FAILED_BACKEND_STORAGE_CREATE)
}

/// Not another of the same name.
fn exactly(uid: Option<String>) -> DeleteParams {
    DeleteParams::default().preconditions(Preconditions { uid, resource_version: None })
}

async fn create_pod(context: &Context, observed: &mut Observed, new: &NewPod) -> Result<(), Trouble> {
    let outcome = match rendering::render(context, observed, new).await {
        Ok(pod) => create(context, &pod).await,
        Err(trouble) => Err(trouble),
    };
    let vmi = observed.vmi.clone();
    let (pod, is_new) = outcome.inspect_err(|trouble| {
        let message = format!("Error creating pod: {}", trouble.message);
        context.recorder.event(vmi.as_ref(), Kind::Warning, event_reason(trouble), message);
    })?;
    if is_new {
        let message = told(new, &pod);
        context.recorder.event(vmi.as_ref(), Kind::Normal, objects::SUCCESSFUL_CREATE, message);
    }
    match new {
        NewPod::Launcher(_) | NewPod::Provisioner(_) => observed.pods.push(pod),
        NewPod::Attachment { .. } | NewPod::Trigger { .. } => observed.attachments.push(pod),
    }
    Ok(())
}

fn event_reason(trouble: &Trouble) -> &str {
    if trouble.reason == reasons::FAILED_PVC_NOT_FOUND { &trouble.reason } else { objects::FAILED_CREATE }
}

fn told(new: &NewPod, pod: &Pod) -> String {
    match new {
        NewPod::Launcher(_) | NewPod::Provisioner(_) => {
            format!("Created virtual machine pod {}", pod.name_any())
        }
        NewPod::Attachment { .. } => format!("Created attachment pod {}", pod.name_any()),
        NewPod::Trigger { volume, .. } => format!("Created hotplug trigger pod for volume {}", volume.name),
    }
}

/// Makes the pod, or finds the one that was made before the store heard of it.
async fn create(context: &Context, pod: &Pod) -> Result<(Arc<Pod>, bool), Trouble> {
    let api = context.api::<Pod>(&namespace(pod));
    let failed = |error: kube::Error| Trouble::passing(reasons::FAILED_CREATE, explained(&error));
    match patch::create(&api, pod).await {
        Ok(metadata) => Ok((trimmed(made(pod.clone(), metadata)), true)),
        Err(error) if patch::is_taken(&error) => {
            let found = api.get(&pod.name_any()).await.map_err(failed)?;
            let is_ours =
                controller(&found).map(|owner| &owner.uid) == controller(pod).map(|owner| &owner.uid);
            if !is_ours || found.metadata.deletion_timestamp.is_some() {
                let message = format!("pod {} is in the way until it is gone", pod.name_any());
                return Err(Trouble::passing(reasons::FAILED_CREATE, message));
            }
            Ok((trimmed(found), false))
        }
        Err(error) => Err(failed(error)),
    }
}

/// A pod as it is stored when it is new, but for what others add to it: the store tells of that soon.
fn made(pod: Pod, metadata: ObjectMeta) -> Pod {
    let status = PodStatus { phase: Some("Pending".to_owned()), ..PodStatus::default() };
    Pod { metadata, status: Some(status), ..pod }
}

fn explained(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 && status.message.contains("violates PodSecurity") => {
            format!("it needs a privileged namespace to run: {}", status.message)
        }
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

async fn delete_pod(context: &Context, observed: &Observed, pod: &Pod, role: Role) -> Result<(), Trouble> {
    let api = context.api::<Pod>(&namespace(pod));
    let mut parameters = exactly(pod.uid());
    if role.goes_at_once() {
        parameters = parameters.grace_period(0);
    }
    let name = pod.name_any();
    match api.delete(&name, &parameters).await {
        Ok(_) => {
            let message = format!("Deleted {} {name}", role.words());
            context.recorder.event(observed.vmi.as_ref(), Kind::Normal, objects::SUCCESSFUL_DELETE, message);
            Ok(())
        }
        // Gone, or another one by now.
        Err(error) if patch::is_gone(&error) || patch::is_conflict(&error) => Ok(()),
        Err(error) => {
            let message = format!("Failed to delete {} {name}", role.words());
            context.recorder.event(observed.vmi.as_ref(), Kind::Warning, objects::FAILED_DELETE, message);
            Err(Trouble::passing(reasons::FAILED_DELETE, error.to_string()))
        }
    }
}
