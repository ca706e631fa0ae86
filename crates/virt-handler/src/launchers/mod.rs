//! The launchers of this node: finding them, hearing them and noticing when they are gone.
//!
//! Each has a companion, a task that waits for its socket, listens in its pod, connects and stays until the launcher
//! is gone for good. All that is needed is found again by the next handler, so a launcher never notices a restart.

mod allowance;
mod arrival;
mod client;
mod companion;
mod ear;
pub mod folders;
mod requests;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kubevirt_component::Queue;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::domains::{Domains, Owner};
pub use client::{CommandError, Launcher, request};
pub use ear::Notice;
use folders::Folders;
pub use requests::Checkpoint;

/// How launchers are looked after.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The kubelet's folder of pods.
    pub pods: PathBuf,
    /// How long a launcher may be silent before it counts as dead.
    pub watchdog: Duration,
    /// How long a launcher may take to open its socket.
    pub patience: Duration,
}

impl Settings {
    /// The usual settings.
    pub fn new(pods: PathBuf, watchdog: Duration) -> Self {
        Self { pods, watchdog, patience: Duration::from_secs(180) }
    }
}

/// How it stands with a launcher.
#[derive(Clone, Debug, Default)]
pub enum Contact {
    /// Nobody looks after it here.
    #[default]
    None,
    /// It has not been reached yet.
    Awaited,
    /// It answers.
    Connected(Launcher),
    /// It will not answer any more.
    Lost(Loss),
}

/// Why a launcher will not answer any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// It ended, and maybe its pod with it.
    #[error("the launcher has ended")]
    Ended,
    /// It never opened its socket.
    #[error("the launcher has not become ready within {0:?}")]
    NeverReady(Duration),
    /// It is there and does not answer.
    #[error("the launcher has not answered for {0:?}")]
    Silent(Duration),
    /// It speaks another version of the protocol.
    #[error("the launcher cannot be spoken to: {0}")]
    Strange(String),
}

/// All launchers that are looked after, by the UID of their instance.
pub struct Launchers {
    shared: Arc<Shared>,
    companions: Mutex<BTreeMap<String, Companion>>,
}

/// What all companions share.
struct Shared {
    settings: Settings,
    folders: Folders,
    domains: Arc<Domains>,
    queue: Queue,
    notices: mpsc::UnboundedSender<Notice>,
    contacts: Mutex<BTreeMap<String, Contact>>,
}

struct Companion {
    owner: Owner,
    /// Its end is the companion's.
    _task: AbortOnDropHandle<()>,
}

impl Launchers {
    /// Looks after nobody yet. Whatever a launcher tells brings its instance into the queue.
    pub fn new(
        settings: Settings,
        domains: Arc<Domains>,
        queue: Queue,
        notices: mpsc::UnboundedSender<Notice>,
    ) -> Self {
        let folders = Folders::new(&settings.pods);
        let contacts = Mutex::default();
        let shared = Shared { settings, folders, domains, queue, notices, contacts };
        Self { shared: Arc::new(shared), companions: Mutex::default() }
    }

    /// Looks after everyone that an earlier handler looked after.
    pub fn adopt(&self) {
        for owner in self.shared.domains.all() {
            self.accompany(owner);
        }
    }

    /// Looks after a launcher from now on. It is written down first, so that a later handler does the same.
    pub fn look_after(&self, owner: &Owner) -> io::Result<()> {
        if self.lock().get(&owner.uid).is_some_and(|companion| companion.owner == *owner) {
            return Ok(());
        }
        self.shared.domains.note(owner)?;
        self.accompany(owner.clone());
        Ok(())
    }

    /// How it stands with the launcher of an instance.
    pub fn contact(&self, uid: &str) -> Contact {
        self.shared.contacts().get(uid).cloned().unwrap_or_default()
    }

    /// All launchers that answer.
    pub fn connected(&self) -> Vec<(Owner, Launcher)> {
        let companions = self.lock();
        let answering = |companion: &Companion| match self.contact(&companion.owner.uid) {
            Contact::Connected(launcher) => Some((companion.owner.clone(), launcher)),
            _ => None,
        };
        companions.values().filter_map(answering).collect()
    }

    /// Looks after a launcher no longer, and forgets its domain.
    pub fn forget(&self, uid: &str) -> io::Result<()> {
        let companion = self.lock().remove(uid);
        self.shared.contacts().remove(uid);
        if let Some(companion) = companion {
            self.shared.folders.stop_listening(&companion.owner.pod);
        }
        self.shared.domains.forget(uid)
    }

    /// The kubelet's folder of pods.
    pub fn folders(&self) -> &Folders {
        &self.shared.folders
    }

    fn accompany(&self, owner: Owner) {
        let mut companions = self.lock();
        let uid = owner.uid.clone();
        self.shared.contacts().insert(uid.clone(), Contact::Awaited);
        let task =
            AbortOnDropHandle::new(tokio::spawn(companion::accompany(self.shared.clone(), owner.clone())));
        companions.insert(uid, Companion { owner, _task: task });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Companion>> {
        self.companions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn contacts(&self) -> MutexGuard<'_, BTreeMap<String, Contact>> {
        self.contacts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how it stands with a launcher, unless nobody wants to know any more.
    fn set_contact(&self, owner: &Owner, contact: Contact) {
        if let Some(known) = self.contacts().get_mut(&owner.uid) {
            *known = contact;
        }
        self.queue.add(owner.key.clone());
    }
}
