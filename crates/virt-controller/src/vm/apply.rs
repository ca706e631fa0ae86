//! Carries a plan out.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kubevirt_admission::instancetype::revision;
use kubevirt_api::data_volume::DataVolume;
use kubevirt_api::names::{annotations, events, finalizers, reasons};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::events::Kind;
use kubevirt_component::{NamespacedName, Next, patch};

use super::clone_source;
use super::observe::Observed;
use super::plan::{Failure, Plan, Step};
use super::{status, view};
use crate::context::Context;
use crate::owned::is_there;

/// Why a round has to be tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server did not take a write, or what was seen is outdated.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The machine, or whether it has an instance, is not what was seen.
    #[error("what was seen of the machine is outdated")]
    Outdated,
    /// The machine cannot have what it asks for; its status says so, too.
    #[error("{}: {}", .0.reason, .0.message)]
    Failed(Failure),
}

/// Carries a plan out: the machine is written first, then what it needs is made, then its status says so, and last
/// its instance is changed or deleted. So a finalizer is there before what it is for, and the status tells of an
/// instance's end before the instance can go.
pub async fn apply(cx: &Context, seen: &Observed, mut plan: Plan, now: Timestamp) -> Result<Next, Error> {
    let round = Round { cx, seen, namespace: seen.vm.metadata.namespace.as_deref().unwrap_or_default() };
    if plan.takes_over() && !is_there(cx, &*seen.vm).await? {
        return Err(Error::Outdated);
    }
    if plan.releases(&seen.vm) {
        round.check_for_instance().await?;
    }
    let Some(written) = round.write_machine(&plan).await? else { return Ok(Next::Wait) };
    let released = view::is_deleting(&written.metadata)
        && !view::has_finalizer(&written.metadata, finalizers::VM_CONTROLLER);
    if released {
        return Ok(Next::Wait);
    }
    round.take_steps(&mut plan).await?;
    let written = round.write_status(written, &plan, now).await?;
    let failed_before = plan.failure.is_some();
    round.finish_instance(&mut plan).await?;
    if plan.failure.is_some() && !failed_before {
        round.write_status(written, &plan, now).await?;
    }
    round.report(&plan);
    match plan.failure {
        Some(failure) => Err(Error::Failed(failure)),
        None => {
            round.drop_revisions(&plan.outdated_revisions).await?;
            Ok(until(plan.look_again, now))
        }
    }
}

fn until(look_again: Option<Timestamp>, now: Timestamp) -> Next {
    let pause = look_again.and_then(|at| at.duration_since(now).try_into().ok());
    pause.map_or(Next::Wait, Next::After)
}

struct Round<'a> {
    cx: &'a Context,
    seen: &'a Observed,
    namespace: &'a str,
}

impl Round<'_> {
    /// Asks the API server itself whether the machine has an instance, before it goes without one.
    async fn check_for_instance(&self) -> Result<(), Error> {
        let name = self.seen.vm.metadata.name.as_deref().unwrap_or_default();
        let found = self.cx.api::<VirtualMachineInstance>(self.namespace).get_opt(name).await?;
        let owner = found.as_ref().and_then(|vmi| view::controller(&vmi.metadata)).map(|owner| &owner.uid);
        let ours = owner.is_some() && owner == self.seen.vm.metadata.uid.as_ref();
        if ours && self.seen.instance.is_none() { Err(Error::Outdated) } else { Ok(()) }
    }

    /// The machine as it is after its metadata and specification were written; nothing if it is gone.
    async fn write_machine(&self, plan: &Plan) -> Result<Option<VirtualMachine>, Error> {
        let seen = &*self.seen.vm;
        let wanted = VirtualMachine { status: seen.status.clone(), ..plan.machine.clone() };
        match patch::write(&self.cx.api(self.namespace), seen, &wanted).await {
            Ok(written) => Ok(Some(written.unwrap_or_else(|| seen.clone()))),
            Err(error) if patch::is_gone(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn write_status(
        &self,
        machine: VirtualMachine,
        plan: &Plan,
        now: Timestamp,
    ) -> Result<VirtualMachine, Error> {
        let status = status::after(self.seen, plan, now);
        let wanted = VirtualMachine { status: Some(status), ..machine.clone() };
        match patch::write_status(&self.cx.api(self.namespace), &machine, &wanted).await {
            Ok(written) => Ok(written.unwrap_or(wanted)),
            Err(error) if patch::is_gone(&error) => Ok(wanted),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the steps in order. The first that is refused becomes the failure of the plan, and ends it.
    async fn take_steps(&self, plan: &mut Plan) -> Result<(), Error> {
        for step in plan.steps.clone() {
            if let Err(failure) = self.take(plan, step).await? {
                plan.events.retain(|event| event.warning);
                plan.failure = Some(failure);
                return Ok(());
            }
        }
        Ok(())
    }

    async fn take(&self, plan: &mut Plan, step: Step) -> Result<Result<(), Failure>, Error> {
        match step {
            Step::CreateDataVolume(made) => self.create_data_volume(plan, *made).await,
            Step::AdoptDataVolume(adopted) => {
                let name = adopted.metadata.name.clone().unwrap_or_default();
                if let Some(existing) = self.seen.data_volumes.get(&name).map(|found| &**found) {
                    patch::write(&self.cx.api(self.namespace), existing, &adopted).await?;
                }
                Ok(Ok(()))
            }
            Step::CreateRevision(kept) => self.create_revision(plan, &kept).await,
            Step::MarkDump { claim, outcome } => {
                if let Some(existing) = self.seen.claims.get(&claim).map(|found| &**found) {
                    let mut marked: PersistentVolumeClaim = existing.clone();
                    let all = marked.metadata.annotations.get_or_insert_default();
                    all.insert(annotations::MEMORY_DUMP.to_owned(), outcome);
                    patch::write(&self.cx.api(self.namespace), existing, &marked).await?;
                }
                Ok(Ok(()))
            }
            Step::CreateInstance(vmi) => self.create_instance(plan, &vmi).await,
        }
    }

    async fn create_data_volume(
        &self,
        plan: &mut Plan,
        mut made: DataVolume,
    ) -> Result<Result<(), Failure>, Error> {
        let name = made.metadata.name.clone().unwrap_or_default();
        let failed = |plan: &mut Plan, reason, message: String| {
            plan.warn(reason, message.clone());
            Ok(Err(Failure::new(reasons::vm::FAILED_CREATE, message)))
        };
        if let Err(error) = clone_source::settle(&self.cx.client, &self.seen.vm, &mut made).await {
            let reason = match error {
                clone_source::Error::Forbidden { .. } => events::data_volume::UNAUTHORIZED_CREATE,
                clone_source::Error::Api(_) => events::data_volume::FAILED_CREATE,
            };
            return failed(plan, reason, format!("The DataVolume {name} cannot be made: {error}"));
        }
        self.warn_of_missing_source(plan, &made);
        match self.cx.api(self.namespace).create(&PostParams::default(), &made).await {
            Ok(_) => {
                plan.tell(events::data_volume::SUCCESSFUL_CREATE, format!("Created the DataVolume {name}"));
                Ok(Ok(()))
            }
            Err(error) if patch::is_taken(&error) => Ok(Ok(())),
            Err(error) => {
                let message = format!("The DataVolume {name} could not be made: {error}");
                failed(plan, events::data_volume::FAILED_CREATE, message)
            }
        }
    }

    /// A clone may be asked for before its source exists; it stays empty until then.
    fn warn_of_missing_source(&self, plan: &mut Plan, made: &DataVolume) {
        let Some(claim) = made.spec.source.as_ref().and_then(|source| source.pvc.as_ref()) else { return };
        let namespace = if claim.namespace.is_empty() { self.namespace } else { &claim.namespace };
        if self.cx.stores.claims.get(&NamespacedName::new(namespace, &claim.name)).is_none() {
            let name = made.metadata.name.as_deref().unwrap_or_default();
            let message =
                format!("The claim {} does not exist yet: {name} stays empty until then", claim.name);
            plan.warn(events::data_volume::SOURCE_NOT_AVAILABLE, message);
        }
    }

    async fn create_revision(
        &self,
        plan: &mut Plan,
        kept: &ControllerRevision,
    ) -> Result<Result<(), Failure>, Error> {
        let api = self.cx.api::<ControllerRevision>(self.namespace);
        let name = kept.metadata.name.as_deref().unwrap_or_default();
        let message = match api.create(&PostParams::default(), kept).await {
            Ok(_) => return Ok(Ok(())),
            // The name tells the machine, what is kept and its generation.
            Err(error) if patch::is_taken(&error) => {
                let existing = api.get(name).await?;
                let ours = view::controller(&existing.metadata).map(|owner| &owner.uid);
                if ours == self.seen.vm.metadata.uid.as_ref() || revision::keep_the_same(&existing, kept) {
                    return Ok(Ok(()));
                }
                format!("found existing ControllerRevision with unexpected data: {name}")
            }
            Err(error) => format!("the ControllerRevision {name} could not be made: {error}"),
        };
        plan.warn(events::objects::FAILED_CREATE, message.clone());
        Ok(Err(Failure::new(reasons::vm::FAILED_CREATE, message)))
    }

    async fn create_instance(
        &self,
        plan: &mut Plan,
        vmi: &VirtualMachineInstance,
    ) -> Result<Result<(), Failure>, Error> {
        let api = self.cx.api::<VirtualMachineInstance>(self.namespace);
        let message = match api.create(&PostParams::default(), vmi).await {
            Ok(_) => return Ok(Ok(())),
            Err(error) if patch::is_taken(&error) => {
                let existing = api.get(vmi.metadata.name.as_deref().unwrap_or_default()).await?;
                let owner = view::controller(&existing.metadata).map(|owner| &owner.uid);
                if owner == self.seen.vm.metadata.uid.as_ref() {
                    // Made by an earlier round, which the store has not heard of yet.
                    plan.events.retain(|event| event.warning);
                    return Ok(Ok(()));
                }
                "there is an instance of this name that belongs to somebody else".to_owned()
            }
            Err(error) => format!("the instance could not be made: {error}"),
        };
        plan.warn(events::objects::FAILED_CREATE, message.clone());
        Ok(Err(Failure::new(reasons::vm::FAILED_CREATE, message)))
    }

    /// Writes what changed of the instance, then deletes it if it is to stop.
    async fn finish_instance(&self, plan: &mut Plan) -> Result<(), Error> {
        let (Some(seen), Some(wanted)) = (self.seen.instance.as_deref(), plan.instance.clone()) else {
            return Ok(());
        };
        let api = self.cx.api::<VirtualMachineInstance>(self.namespace);
        match patch::write(&api, seen, &wanted).await {
            Ok(_) => {}
            Err(error) if patch::is_gone(&error) => return Ok(()),
            Err(error) if patch::is_conflict(&error) => return Err(error.into()),
            Err(error) => {
                let message = format!("the instance could not be changed: {error}");
                plan.failure = Some(Failure::new(reasons::vm::FAILED_UPDATE_ERROR, message));
            }
        }
        if !plan.stops {
            return Ok(());
        }
        // Only this instance, and no other that took its name.
        let only = Preconditions { uid: wanted.metadata.uid.clone(), resource_version: None };
        let how = DeleteParams { preconditions: Some(only), ..DeleteParams::default() };
        match api.delete(wanted.metadata.name.as_deref().unwrap_or_default(), &how).await {
            Ok(_) => Ok(()),
            Err(error) if patch::is_gone(&error) => Ok(()),
            Err(error) if patch::is_conflict(&error) => Err(error.into()),
            Err(error) => {
                let message = format!("the instance could not be deleted: {error}");
                plan.events.retain(|event| event.warning);
                plan.warn(events::objects::FAILED_DELETE, message.clone());
                plan.failure = Some(Failure::new(reasons::vm::FAILED_DELETE, message));
                Ok(())
            }
        }
    }

    async fn drop_revisions(&self, names: &[String]) -> Result<(), Error> {
        let api = self.cx.api::<ControllerRevision>(self.namespace);
        for name in names {
            match api.delete(name, &DeleteParams::default()).await {
                Ok(_) => {}
                Err(error) if patch::is_gone(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn report(&self, plan: &Plan) {
        for event in &plan.events {
            let kind = if event.warning { Kind::Warning } else { Kind::Normal };
            self.cx.recorder.event(&*self.seen.vm, kind, event.reason, event.message.clone());
        }
    }
}
