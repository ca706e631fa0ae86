//! Machines that are deleted, whatever they are doing.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kubevirt_api::vm::status::PrintableStatus;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::{Value, json};
use test_kit::{KUBEVIRT, Test, conditions};

use super::disks;
use super::ends::kill;
use super::guest::{PATIENCE, instances, launcher, machines, phase, wait_for_phase, wait_for_status};
use super::leftovers::Traces;
use super::manifest::{idle, machine, on_node};

/// What a machine is doing when it is deleted. None of them gets any further by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// It has just been made.
    New,
    /// It waits for a claim, and has no pod.
    Pending,
    /// No node takes its pod.
    Nowhere,
    /// Its pod is on a node, and waits for an image.
    Scheduling,
    /// Its pod runs, and its guest cannot be started.
    Scheduled,
    Running,
    /// Its guest was asked to shut down, and does not.
    Stopping,
    /// Its guest has shut down.
    Succeeded,
    /// Its guest was killed.
    Failed,
    /// Its pods fail, and it waits before the next.
    BackOff,
}

const MOMENTS: [Moment; 10] = [
    Moment::New,
    Moment::Pending,
    Moment::Nowhere,
    Moment::Scheduling,
    Moment::Scheduled,
    Moment::Running,
    Moment::Stopping,
    Moment::Succeeded,
    Moment::Failed,
    Moment::BackOff,
];

impl Moment {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    fn manifest(self, test: &Test) -> Result<Value> {
        let spec = match self {
            Self::Pending => {
                let mut spec = disks::with("");
                spec["volumes"] =
                    json!([{"name": "root", "persistentVolumeClaim": {"claimName": "missing"}}]);
                spec
            }
            Self::Nowhere => on_node(idle(), "nowhere"),
            Self::Scheduling => disks::with("registry.example/missing:1"),
            Self::Scheduled => disks::without_disk(test)?,
            Self::Stopping => {
                let mut spec = idle();
                spec["terminationGracePeriodSeconds"] = json!(15);
                spec
            }
            Self::Succeeded => disks::brief(test)?,
            Self::BackOff => disks::broken(test)?,
            Self::New | Self::Running | Self::Failed => idle(),
        };
        // The instances of these stay as they ended.
        let strategy = if matches!(self, Self::Succeeded | Self::Failed) { "Once" } else { "Always" };
        Ok(machine(&self.name(), strategy, spec))
    }

    /// Waits until the machine is there.
    async fn wait(self, test: &Test) -> Result<()> {
        let name = &self.name();
        let on_the_way = async |wanted: VmiPhase| wait_for_phase(test, name, wanted).await.map(drop);
        match self {
            Self::New => Ok(()),
            Self::Pending => on_the_way(VmiPhase::Pending).await,
            Self::Nowhere => {
                wait_for_status(test, name, PrintableStatus::ErrorUnschedulable).await?;
                on_the_way(VmiPhase::Scheduling).await
            }
            Self::Scheduling | Self::Scheduled => {
                let unable = conditions::is::<VirtualMachineInstance>("Synchronized", "False");
                test.wait_within(PATIENCE, &instances(test), name, "is held up", unable).await?;
                let expected =
                    if self == Self::Scheduled { VmiPhase::Scheduled } else { VmiPhase::Scheduling };
                on_the_way(expected).await
            }
            Self::Running => on_the_way(VmiPhase::Running).await,
            Self::Stopping => {
                on_the_way(VmiPhase::Running).await?;
                let halt = Patch::Merge(json!({"spec": {"runStrategy": "Halted"}}));
                machines(test).patch(name, &PatchParams::default(), &halt).await?;
                wait_for_status(test, name, PrintableStatus::Stopping).await.map(drop)
            }
            Self::Succeeded => on_the_way(VmiPhase::Succeeded).await,
            Self::Failed => {
                let vmi = wait_for_phase(test, name, VmiPhase::Running).await?;
                kill(test, &launcher(test, &vmi).await?, "qemu-system", "KILL")?;
                on_the_way(VmiPhase::Failed).await
            }
            Self::BackOff => wait_for_status(test, name, PrintableStatus::CrashLoopBackOff).await.map(drop),
        }
    }

    /// The phase that the instance of a machine stays in, of those that have one.
    fn phase(self) -> Option<VmiPhase> {
        Some(match self {
            Self::New | Self::BackOff => return None,
            Self::Pending => VmiPhase::Pending,
            Self::Nowhere | Self::Scheduling => VmiPhase::Scheduling,
            Self::Scheduled => VmiPhase::Scheduled,
            Self::Running | Self::Stopping => VmiPhase::Running,
            Self::Succeeded => VmiPhase::Succeeded,
            Self::Failed => VmiPhase::Failed,
        })
    }
}

#[tokio::test]
async fn machines_can_be_deleted_at_any_moment() -> Result<()> {
    KUBEVIRT
        .run("deleted", async |test| {
            for moment in MOMENTS {
                test.apply(&moment.manifest(test)?).await?;
                if moment == Moment::New {
                    delete(test, moment).await?;
                }
            }
            for moment in MOMENTS.into_iter().filter(|moment| *moment != Moment::New) {
                moment.wait(test).await.with_context(|| moment.name())?;
                delete(test, moment).await.with_context(|| moment.name())?;
            }
            let left = test.api::<Pod>().list(&ListParams::default()).await?.items;
            ensure!(left.is_empty(), "pods are left: {left:?}");
            Ok(())
        })
        .await
}

async fn delete(test: &Test, moment: Moment) -> Result<()> {
    let name = &moment.name();
    let vmi = instances(test).get_opt(name).await?;
    let mut traces = None;
    if let (Some(vmi), Some(expected)) = (&vmi, moment.phase()) {
        ensure!(phase(vmi) == Some(expected), "it is {:?} before it is deleted", phase(vmi));
        let is_placed = !matches!(moment, Moment::Pending | Moment::Nowhere);
        traces = if is_placed { Some(Traces::of(test, vmi).await?) } else { None };
    }
    machines(test).delete(name, &DeleteParams::default()).await?;
    test.wait_until_gone(&machines(test), name).await?;
    test.wait_until_gone(&instances(test), name).await?;
    match traces {
        Some(traces) => traces.vanish(test).await,
        None => Ok(()),
    }
}
