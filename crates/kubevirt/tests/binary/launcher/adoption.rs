//! Handlers that come and go beside a launcher that stays.

use std::sync::Arc;
use std::time::Duration;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::{NamespacedName, Queue};
use kubevirt_launcher_rpc::cmd::VirtualMachineOptions;
use kubevirt_launcher_rpc::report::{Reason, State};
use kubevirt_virt_handler::domains::{Domains, Owner};
use kubevirt_virt_handler::launchers::{Contact, Launcher, Launchers, Loss, Settings as Care};
use rustix::process::Signal;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::handler::PATIENCE;
use super::pod::{POD, Pod, Settings, UID, vmi};

/// What a handler has of launchers, with a runtime of its own: its end also ends its connections.
pub(super) struct Handler {
    pub(super) domains: Arc<Domains>,
    pub(super) launchers: Arc<Launchers>,
    runtime: Option<Runtime>,
}

impl Handler {
    pub(super) fn start(pod: &Pod, watchdog: Duration) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let domains = Arc::new(Domains::load(&pod.records()).unwrap());
        let (notices, _) = mpsc::unbounded_channel();
        let settings = Care { patience: PATIENCE, ..Care::new(pod.pods(), watchdog) };
        let launchers = Launchers::new(settings, domains.clone(), Queue::new("test"), notices);
        let inside = runtime.enter();
        launchers.adopt();
        drop(inside);
        Self { domains, launchers: Arc::new(launchers), runtime: Some(runtime) }
    }

    pub(super) fn look_after(&self) {
        let key = NamespacedName::new("default", "web");
        let owner = Owner { key, uid: UID.into(), pod: POD.into() };
        let _inside = self.runtime.as_ref().unwrap().enter();
        self.launchers.look_after(&owner).unwrap();
    }

    pub(super) async fn until<T>(&self, what: &str, look: impl Fn(&Self) -> Option<T>) -> T {
        let began = std::time::Instant::now();
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            let state =
                (self.launchers.contact(UID), self.domains.of(UID).map(|report| report.status.clone()));
            assert!(began.elapsed() < PATIENCE, "never {what}: {state:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(super) async fn connected(&self) -> Launcher {
        self.until("connected", |handler| match handler.launchers.contact(UID) {
            Contact::Connected(launcher) => Some(launcher),
            _ => None,
        })
        .await
    }

    async fn lost(&self) -> Loss {
        self.until("lost", |handler| match handler.launchers.contact(UID) {
            Contact::Lost(loss) => Some(loss),
            _ => None,
        })
        .await
    }

    pub(super) async fn hears(&self, state: State, reason: Reason) {
        self.until(&format!("{state:?}"), |handler| {
            let status = handler.domains.of(UID)?.status.clone();
            (status.status == state && status.reason == reason).then_some(())
        })
        .await;
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

pub(super) async fn pod() -> Pod {
    Pod::with(Settings { no_handler: true, like_kubelet: true, ..Settings::default() }).await
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_handler_adopts_the_machines_of_the_one_before_it() {
    let pod = pod().await;
    let first = Handler::start(&pod, LONG);
    assert!(matches!(first.launchers.contact(UID), Contact::None), "nobody told of it yet");
    first.look_after();
    let launcher = first.connected().await;
    let diskless = json!({"spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": null}}, "volumes": null}});
    let machine: VirtualMachineInstance = serde_json::from_value(vmi(diskless)).unwrap();
    launcher.sync(&machine, VirtualMachineOptions::default()).await.unwrap();
    first.hears(State::Running, Reason::Unknown).await;
    let qemu = pod.qemu();
    drop((first, launcher));

    // While there is no handler, things happen.
    pod.call(async |mut commands, request| commands.pause_virtual_machine(request).await).await.unwrap();
    let second = Handler::start(&pod, LONG);
    second.connected().await;
    second.hears(State::Paused, Reason::User).await;
    assert_eq!(pod.qemu(), qemu, "the machine was not disturbed");
    pod.call(async |mut commands, request| commands.unpause_virtual_machine(request).await).await.unwrap();
    second.hears(State::Running, Reason::Unknown).await;

    // The launcher leaves once a handler has heard of the end, and later ones know of it all the same.
    pod.call(async |mut commands, request| commands.kill_virtual_machine(request).await).await.unwrap();
    second.hears(State::Shutoff, Reason::Destroyed).await;
    assert_eq!(second.lost().await, Loss::Ended);
    drop(second);
    let third = Handler::start(&pod, LONG);
    third.hears(State::Shutoff, Reason::Destroyed).await;
    assert_eq!(third.lost().await, Loss::Ended);
    third.launchers.forget(UID).unwrap();
    assert!(Domains::load(&pod.records()).unwrap().all().is_empty(), "nothing is left");
    assert!(!pod.share().join(kubevirt_launcher_rpc::NOTIFY_SOCKET).exists());
}

#[tokio::test]
async fn a_launcher_that_dies_is_missed_at_once() {
    let pod = pod().await;
    let handler = Handler::start(&pod, LONG);
    handler.look_after();
    handler.connected().await;
    pod.signal(Signal::KILL);
    assert_eq!(handler.lost().await, Loss::Ended);
}

#[tokio::test]
async fn a_launcher_that_hangs_is_missed_after_a_while() {
    let pod = pod().await;
    let watchdog = Duration::from_secs(2);
    let handler = Handler::start(&pod, watchdog);
    handler.look_after();
    handler.connected().await;
    pod.signal(Signal::STOP);
    assert_eq!(handler.lost().await, Loss::Silent(watchdog));
}

#[tokio::test]
async fn a_pod_that_is_gone_has_no_launcher() {
    let pod = pod().await;
    std::fs::rename(pod.pods(), pod.records().with_file_name("elsewhere")).unwrap();
    let handler = Handler::start(&pod, LONG);
    handler.look_after();
    assert_eq!(handler.lost().await, Loss::Ended);
}
