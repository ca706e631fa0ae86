//! The launcher: one machine, from the first wish for it to its end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Layout;
use kubevirt_domain::facts::VolumeFacts;
use kubevirt_launcher_rpc::report::{GracePeriod, Reason, ReportMetadata, State};
use kubevirt_network::dhcp::Server;
use tokio::sync::{mpsc, watch};

use crate::arguments::Arguments;
use crate::board::{Board, Notice};
use crate::error::CommandError;
use crate::guest::Guest;
use crate::host::Host;
use crate::lifecycle::Intent;
use crate::migration::Migrations;
use crate::running::Running;

/// Everything that commands, signals and watchers of one machine share.
pub struct Launcher {
    /// What the pod was started with.
    pub(crate) arguments: Arguments,
    /// Where files lie.
    pub(crate) layout: Layout,
    /// What is known of the host and of QEMU.
    pub(crate) host: Host,
    /// What is told of the machine.
    pub(crate) board: Board,
    /// Where the machine comes from or goes to.
    pub(crate) migrations: Migrations,
    /// One command at a time changes what the machine is made of; power and questions do not wait for it.
    pub(crate) work: tokio::sync::Mutex<()>,
    /// What is known of each volume, from when it was made ready.
    pub(crate) volumes: Mutex<BTreeMap<String, VolumeFacts>>,
    /// Who tells the guest its addresses, by network.
    pub(crate) dhcp: Mutex<BTreeMap<String, Server>>,
    /// What is under way with the guest.
    pub(crate) guest: Guest,
    vmi: Mutex<Option<Arc<VirtualMachineInstance>>>,
    running: Mutex<Option<Arc<Running>>>,
    intent: Mutex<Intent>,
    stage: watch::Sender<Stage>,
}

/// How far the launcher is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nobody has asked for a machine yet.
    Waiting,
    /// There is a QEMU, or one is being started.
    Running,
    /// The machine has ended.
    Ended,
    /// No machine will ever come.
    Dismissed,
}

impl Launcher {
    /// A launcher without a machine, and the notices it will have.
    pub fn new(arguments: Arguments) -> (Arc<Self>, mpsc::UnboundedReceiver<Notice>) {
        let metadata = ReportMetadata {
            name: arguments.name.clone(),
            namespace: arguments.namespace.clone(),
            uid: arguments.uid.clone(),
            deletion_timestamp: None,
        };
        let (board, notices) = Board::new(metadata);
        let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
        let share = text(&arguments.kubevirt_share_dir);
        let layout = Layout {
            private: text(&arguments.private_dir),
            ephemeral: text(&arguments.ephemeral_disk_dir),
            container_disks: text(&arguments.container_disk_dir),
            hotplug_disks: text(&arguments.hotplug_disk_dir),
            filesystems: format!("{share}/virtiofs-containers"),
            reservations: format!("{share}/daemons/pr/pr-helper.sock"),
            ..Layout::default()
        };
        let host = Host::new(&arguments);
        let launcher = Self {
            arguments,
            layout,
            host,
            board,
            migrations: Migrations::default(),
            work: tokio::sync::Mutex::new(()),
            volumes: Mutex::new(BTreeMap::new()),
            dhcp: Mutex::new(BTreeMap::new()),
            guest: Guest::default(),
            vmi: Mutex::new(None),
            running: Mutex::new(None),
            intent: Mutex::new(Intent::default()),
            stage: watch::Sender::new(Stage::Waiting),
        };
        (Arc::new(launcher), notices)
    }

    /// Makes the folders that volumes, sockets and QEMU need.
    pub(crate) fn make_folders(&self) -> std::io::Result<()> {
        let machine = self.layout.machine(&self.arguments.uid, "");
        for folder in [machine.as_str(), &self.layout.ephemeral] {
            std::fs::create_dir_all(folder)?;
        }
        Ok(())
    }

    /// The machine that runs.
    pub(crate) fn running(&self) -> Result<Arc<Running>, CommandError> {
        lock(&self.running).clone().ok_or(CommandError::NotRunning)
    }

    /// Takes in, or lets go of, the machine.
    pub(crate) fn set_running(&self, running: Option<Arc<Running>>) {
        *lock(&self.running) = running;
    }

    /// The machine as it was wished for last.
    pub(crate) fn vmi(&self) -> Option<Arc<VirtualMachineInstance>> {
        lock(&self.vmi).clone()
    }

    /// Notes how the machine is wished for.
    pub(crate) fn remember(&self, vmi: &VirtualMachineInstance) {
        *lock(&self.vmi) = Some(Arc::new(vmi.clone()));
        self.expect_credentials(vmi);
    }

    /// What the launcher has begun.
    pub(crate) fn intent(&self) -> Intent {
        *lock(&self.intent)
    }

    /// Notes what the launcher begins.
    pub(crate) fn intend(&self, change: impl FnOnce(&mut Intent)) {
        change(&mut lock(&self.intent));
    }

    /// How far the launcher is.
    pub(crate) fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    /// Follows how far the launcher is.
    pub(crate) fn follow_stage(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// Moves on.
    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }

    /// The VMI of a request, if it is the one that this launcher is for.
    pub(crate) fn read_vmi(&self, json: &[u8]) -> Result<VirtualMachineInstance, CommandError> {
        let vmi: VirtualMachineInstance = serde_json::from_slice(json)?;
        let uid = vmi.metadata.uid.as_deref().unwrap_or("");
        let ours = &self.arguments.uid;
        if !uid.is_empty() && !ours.is_empty() && uid != ours {
            return Err(CommandError::AnotherMachine { ours: ours.clone(), theirs: uid.to_owned() });
        }
        let full = |namespace: &str, name: &str| format!("{namespace}/{name}");
        let name = vmi.metadata.name.as_deref().unwrap_or("");
        let ours = full(&self.arguments.namespace, &self.arguments.name);
        let theirs = full(vmi.metadata.namespace.as_deref().unwrap_or("default"), name);
        if ours != theirs {
            return Err(CommandError::AnotherMachine { ours, theirs });
        }
        Ok(vmi)
    }

    /// Notes that the guest was asked to shut down.
    pub(crate) fn note_grace(&self, seconds: i64) {
        self.board.change_status(|status| {
            status.grace_period.get_or_insert_with(|| GracePeriod { seconds, since: crate::board::now() });
        });
    }

    /// The state of the domain.
    pub(crate) fn state(&self) -> (State, Reason) {
        self.board.state()
    }
}

/// A lock that a panic elsewhere cannot take from us: what it guards is changed in single steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
