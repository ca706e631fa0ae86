//! Carrying out what was decided.

use std::time::Duration;

use jiff::Timestamp;
use kubevirt_api::names::events;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::network::{Interface, InterfaceState};
use kubevirt_api::vmi::status::VolumePhase;
use kubevirt_component::NamespacedName;

use super::events::Say;
use super::fate::Fate;
use super::memory::Memory;
use super::observe::Observed;
use super::options::{fingerprint, options};
use super::plugging::Plugging;
use super::waiting::{Told, Waiting};
use super::{Instances, LookError, Outcome, Step, pod_here, reference, volumes};
use crate::domains::Owner;
use crate::launchers::{CommandError, Contact, Launcher};
use crate::prepare::{self, HotplugState, Place, PrepareError};

/// Where plugged volumes are in the launcher's container.
const PLUGGED: &str = "/var/run/kubevirt/hotplug-disks";

/// How launchers, ours and KubeVirt's, say that they have no firmware for a machine.
const NO_FIRMWARE: [&str; 2] = ["this host has no UEFI image for such a machine", "EFI OVMF rom"];

/// Why a step came to nothing.
enum Trouble {
    /// It takes a little longer.
    NotYet(String),
    /// Something was not plugged or unplugged, which the machine does not suffer from.
    Plugging { problems: Vec<String>, missing: Vec<String> },
    /// It does not work like this.
    Failed(String),
    /// It will never work in this pod.
    Hopeless(String),
}

impl From<PrepareError> for Trouble {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::NotYet(why) => Self::NotYet(why),
            PrepareError::Hopeless(why) => Self::Hopeless(why),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<CommandError> for Trouble {
    fn from(error: CommandError) -> Self {
        match error {
            // Its companion finds out what became of it, and brings us back.
            CommandError::Disconnected(_) => Self::NotYet(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl Instances {
    /// Does what was decided on the node.
    pub(super) async fn carry_out(
        &self,
        key: &NamespacedName,
        uid: &str,
        observed: &Observed,
        step: &Step,
    ) -> Result<Outcome, LookError> {
        let vmi = observed.vmi.as_deref();
        let done = match step {
            Step::Nothing => Ok(Vec::new()),
            Step::PrepareMigrationTarget => Ok(vec![Say::warning(
                events::vmi::PREPARING_TARGET,
                "Instances cannot be received from other nodes yet: this is not part of this version.",
            )]),
            Step::LookAfter => {
                if let Some(pod) = vmi.and_then(|vmi| pod_here(vmi, &self.node)) {
                    let owner = Owner { key: key.clone(), uid: uid.to_owned(), pod: pod.to_owned() };
                    self.launchers.look_after(&owner)?;
                }
                Ok(Vec::new())
            }
            Step::Start => self.start(uid, vmi).await,
            Step::Update => self.update(uid, vmi).await,
            Step::Resume => self.resume(uid, vmi).await,
            Step::AskToShutDown { first } => self.ask_to_shut_down(uid, vmi, *first).await,
            Step::Kill { irrecoverable } => self.kill(uid, vmi, *irrecoverable).await,
            Step::CleanUp | Step::LeaveMigrationSource => self.clean_up(uid, vmi).await,
        };
        Ok(done.map_or_else(|trouble| self.take_in(key, uid, trouble), |say| self.succeed(uid, say)))
    }

    /// Nothing that was in the way is any more.
    fn succeed(&self, uid: &str, say: Vec<Say>) -> Outcome {
        if self.memory.of(uid).waiting.has_begun() {
            self.memory.change(uid, |memory| {
                memory.waiting = Waiting::default();
                memory.plugging = Plugging::default();
            });
        }
        Outcome { say, ..Outcome::default() }
    }

    /// What follows from what is in the way.
    fn take_in(&self, key: &NamespacedName, uid: &str, trouble: Trouble) -> Outcome {
        match trouble {
            Trouble::NotYet(why) => {
                tracing::debug!(vmi = %key, %why, "not yet");
                let change = |memory: &mut Memory| {
                    (memory.waiting.told(&why, Timestamp::now()), memory.waiting.pause())
                };
                let (told, pause) = self.memory.change(uid, change);
                waits(told, pause)
            }
            Trouble::Plugging { problems, missing } => {
                let change = |memory: &mut Memory| {
                    memory.waiting.over();
                    (memory.plugging.told(&problems, &missing), memory.waiting.pause())
                };
                let (told, pause) = self.memory.change(uid, change);
                let say = told.iter().map(|why| Say::warning(events::vmi::HOTPLUG_FAILED, why)).collect();
                Outcome { say, again: Some(pause), ..Outcome::default() }
            }
            Trouble::Failed(why) => {
                self.memory.change(uid, |memory| memory.waiting = Waiting::default());
                Outcome { fate: Fate::Failed(why), ..Outcome::default() }
            }
            Trouble::Hopeless(why) => Outcome { fate: Fate::Hopeless(why), ..Outcome::default() },
        }
    }

    fn launcher(&self, uid: &str) -> Result<Launcher, Trouble> {
        match self.launchers.contact(uid) {
            Contact::Connected(launcher) => Ok(launcher),
            _ => Err(Trouble::NotYet("the launcher does not answer".into())),
        }
    }

    async fn place(&self, uid: &str) -> Result<Place, Trouble> {
        let owner = self.domains.owner(uid).ok_or_else(|| Trouble::NotYet("the pod is not known".into()))?;
        let sockets = self.launchers.folders().sockets(&owner.pod);
        let sockets = sockets.ok_or_else(|| Trouble::Failed("the pod has no UID".into()))?;
        let socket = sockets.join(kubevirt_launcher_rpc::LAUNCHER_SOCKET);
        Ok(Place::seek(&owner.pod, socket, &self.folders).await?)
    }

    async fn start(&self, uid: &str, vmi: Option<&VirtualMachineInstance>) -> Result<Vec<Say>, Trouble> {
        let Some(vmi) = vmi else { return Ok(Vec::new()) };
        let (launcher, place) = (self.launcher(uid)?, self.place(uid).await?);
        let config = self.config();
        let prepared = prepare::before_start(vmi, &place, &config).await?;
        let notes = prepared.notes.iter().map(|note| Say::warning(events::vmi::TOLERATED_SMALL_PV, note));
        let mut say: Vec<Say> = notes.collect();
        self.memory.change(uid, |memory| {
            memory.on_node.plugged(&prepared.hotplug);
            memory.on_node.network = Some(prepared.network.clone());
            memory.on_node.selinux = Some(prepared.selinux_context.clone());
        });
        let mut options = options(vmi, &config, &self.topology, &prepared.network);
        let print = fingerprint(vmi, &options);
        // Beside what a machine is made of: it only spares the launcher to ask.
        options.qemu_json.clone_from(&self.qemu);
        launcher.sync(vmi, options).await.map_err(refused)?;
        self.memory.change(uid, |memory| memory.synced = Some(print));
        self.learn(uid, &launcher).await?;
        say.push(Say::normal(events::vmi::CREATED, "The guest is defined."));
        Ok(say)
    }

    /// Learns of the machine that was just made, if the launcher has not told of it yet: so all that is to be told of
    /// it is told at once.
    async fn learn(&self, uid: &str, launcher: &Launcher) -> Result<(), Trouble> {
        let told = self
            .domains
            .of(uid)
            .is_some_and(|report| report.spec.is_some() && report.status.status.is_alive());
        if told {
            return Ok(());
        }
        let (Some(report), Some(owner)) = (launcher.domain().await?, self.domains.owner(uid)) else {
            return Ok(());
        };
        self.domains.tell(&owner, report).map_err(|error| Trouble::Failed(error.to_string()))?;
        Ok(())
    }

    async fn update(&self, uid: &str, vmi: Option<&VirtualMachineInstance>) -> Result<Vec<Say>, Trouble> {
        let Some(vmi) = vmi else { return Ok(Vec::new()) };
        let (config, memory) = (self.config(), self.memory.of(uid));
        if !memory.checksums_asked {
            self.fingerprint_disks(uid, vmi, &self.place(uid).await?, &config);
        }
        let wired = memory.on_node.network.as_deref().unwrap_or_default();
        let same = options(vmi, &config, &self.topology, wired);
        if is_settled(vmi) && memory.synced == Some(fingerprint(vmi, &same)) {
            return Ok(Vec::new());
        }
        let (launcher, place) = (self.launcher(uid)?, self.place(uid).await?);
        let running = prepare::while_running(vmi, &place, &config).await?;
        self.memory.change(uid, |memory| {
            memory.on_node.plugged(&running.hotplug);
            memory.on_node.network = Some(running.network.clone());
        });
        let options = options(vmi, &config, &self.topology, &running.network);
        let print = fingerprint(vmi, &options);
        if memory.synced != Some(print) {
            launcher.sync(vmi, options).await?;
            self.memory.change(uid, |memory| memory.synced = Some(print));
        }
        self.dump_memory(uid, vmi, &launcher).await?;
        let missing: Vec<String> = running.hotplug.iter().filter_map(HotplugState::missing).collect();
        if missing.is_empty() && running.problems.is_empty() {
            return Ok(Vec::new());
        }
        Err(Trouble::Plugging { problems: running.problems, missing })
    }

    /// Has the guest's memory written where that is wished for and not begun.
    async fn dump_memory(
        &self,
        uid: &str,
        vmi: &VirtualMachineInstance,
        launcher: &Launcher,
    ) -> Result<(), Trouble> {
        let all = vmi.status.iter().flat_map(|status| status.volume_status.iter().flatten());
        for status in all.filter(|status| status.phase == Some(VolumePhase::MemoryDumpInProgress)) {
            let file = status.memory_dump_volume.as_ref().and_then(|dump| dump.target_file_name.as_deref());
            let report = self.domains.of(uid);
            let job = report.as_ref().and_then(|report| report.status.memory_dump.as_ref());
            let Some(file) = file.filter(|file| !job.is_some_and(|job| volumes::is_of(job, Some(file))))
            else {
                continue;
            };
            launcher.dump_memory(vmi, &format!("{PLUGGED}/{}/{file}", status.name)).await?;
        }
        Ok(())
    }

    async fn resume(&self, uid: &str, vmi: Option<&VirtualMachineInstance>) -> Result<Vec<Say>, Trouble> {
        self.memory.change(uid, |memory| memory.resumed(Timestamp::now()));
        if let Some(vmi) = vmi {
            self.launcher(uid)?.unpause(vmi).await?;
        }
        Ok(Vec::new())
    }

    async fn ask_to_shut_down(
        &self,
        uid: &str,
        vmi: Option<&VirtualMachineInstance>,
        first: bool,
    ) -> Result<Vec<Say>, Trouble> {
        self.memory.change(uid, |memory| memory.asked = Some(Timestamp::now()));
        let launcher = self.launcher(uid)?;
        let vmi = self.subject(uid, vmi)?;
        match launcher.shut_down(&vmi).await {
            // A guest that cannot be asked is ended when its time is over.
            Err(CommandError::Refused(why)) => {
                tracing::info!(%why, uid, "the guest cannot be asked to shut down");
            }
            done => done?,
        }
        let say = Say::normal(events::vmi::SHUTTING_DOWN, "The guest was asked to shut down.");
        Ok(first.then_some(say).into_iter().collect())
    }

    async fn kill(
        &self,
        uid: &str,
        vmi: Option<&VirtualMachineInstance>,
        irrecoverable: bool,
    ) -> Result<Vec<Say>, Trouble> {
        let vmi = self.subject(uid, vmi)?;
        self.launcher(uid)?.kill(&vmi).await?;
        let message = if irrecoverable {
            "The machine was ended: its memory can no longer arrive."
        } else {
            "The machine was ended."
        };
        Ok(vec![Say::normal(events::vmi::DELETED, message)])
    }

    /// Leaves nothing of a machine on the node.
    async fn clean_up(&self, uid: &str, vmi: Option<&VirtualMachineInstance>) -> Result<Vec<Say>, Trouble> {
        let mut say = Vec::new();
        let alive = self.domains.of(uid).is_some_and(|report| report.status.status.is_alive());
        // A launcher that never had a machine would wait for one, and keep its pod.
        let in_vain = vmi.is_some_and(VirtualMachineInstance::is_final);
        if let (Contact::Connected(launcher), true) = (self.launchers.contact(uid), alive || in_vain) {
            let vmi = self.subject(uid, vmi)?;
            match launcher.delete(&vmi).await {
                Err(error) if !error.is_disconnected() => return Err(error.into()),
                _ if alive => {
                    let message = "The launcher was told to end the machine.";
                    say.push(Say::normal(events::vmi::DELETED, message));
                }
                _ => {}
            }
        }
        if let Some(owner) = self.domains.owner(uid) {
            prepare::after_end(&owner.pod, &self.folders).await?;
        }
        self.launchers.forget(uid).map_err(|error| Trouble::Failed(error.to_string()))?;
        Ok(say)
    }

    /// The instance, or as much of it as a launcher needs to know whom it is about.
    fn subject(
        &self,
        uid: &str,
        vmi: Option<&VirtualMachineInstance>,
    ) -> Result<VirtualMachineInstance, Trouble> {
        let owner = || self.domains.owner(uid).map(|owner| reference(&owner));
        vmi.cloned().or_else(owner).ok_or_else(|| Trouble::NotYet("the instance is not known".into()))
    }
}

/// What follows if a launcher does not start its machine. No other firmware comes to it later.
fn refused(error: CommandError) -> Trouble {
    match error {
        CommandError::Refused(why) if NO_FIRMWARE.iter().any(|words| why.contains(words)) => {
            Trouble::Hopeless(why)
        }
        error => error.into(),
    }
}

/// What follows from a step that has to wait.
fn waits(told: Told, pause: Duration) -> Outcome {
    let (say, fate) = match told {
        Told::Nothing => (Vec::new(), Fate::Waits),
        Told::First(why) => (vec![Say::warning(events::vmi::SYNC_FAILED, &why)], Fate::Overdue(why)),
        Told::Still(why) => (Vec::new(), Fate::Overdue(why)),
    };
    Outcome { say, fate, again: Some(pause) }
}

/// Whether nothing can come or go without the instance saying so.
fn is_settled(vmi: &VirtualMachineInstance) -> bool {
    let volumes = vmi.status.iter().flat_map(|status| status.volume_status.iter().flatten());
    let mut interfaces = vmi.spec.domain.devices.interfaces.iter().flatten();
    let leaves = |interface: &Interface| interface.state == Some(InterfaceState::Absent);
    !volumes.into_iter().any(|volume| volume.hotplug_volume.is_some()) && !interfaces.any(leaves)
}

#[cfg(test)]
mod tests {
    use kubevirt_domain::{HostFacts, Layout, QemuFacts, convert};
    use serde_json::json;

    use super::super::testing::vmi;
    use super::*;

    #[test]
    fn a_launcher_without_firmware_is_the_end() {
        let efi = json!({"domain": {"firmware": {"bootloader": {"efi": {"secureBoot": false}}}}});
        let host = HostFacts { kvm: true, ..HostFacts::default() };
        let ours = convert(&vmi(efi, json!({})), &host, &QemuFacts::default(), &Layout::default());
        let ours = ours.unwrap_err().to_string();
        let theirs = "EFI OVMF roms missing for booting in EFI mode with SecureBoot=true, SEV/SEV-ES=false";
        for (why, expected) in
            [(ours.as_str(), true), (theirs, true), ("spec.domain.cpu.model: unknown", false), ("", false)]
        {
            let trouble = refused(CommandError::Refused(why.to_owned()));
            assert_eq!(matches!(trouble, Trouble::Hopeless(_)), expected, "{why}");
        }
        let silent = refused(CommandError::Silent(Duration::ZERO));
        assert!(matches!(silent, Trouble::Failed(_)));
    }

    #[test]
    fn a_wait_is_told_once_as_an_event_and_as_long_as_it_takes_as_a_condition() {
        let pause = Duration::from_secs(1);
        let why = || "no interface".to_owned();
        let event = Say::warning(events::vmi::SYNC_FAILED, "no interface");
        for (told, say, fate) in [
            (Told::Nothing, vec![], Fate::Waits),
            (Told::First(why()), vec![event], Fate::Overdue(why())),
            (Told::Still(why()), vec![], Fate::Overdue(why())),
        ] {
            let outcome = waits(told, pause);
            assert_eq!((outcome.say, outcome.fate, outcome.again), (say, fate, Some(pause)));
        }
    }
}
