//! Tells guests that want to know what their host and their machine use, on a disk and on a channel, as vhostmd does.
//!
//! A machine has a task of its own for it, and one that wants nothing has none. What there is to tell is a pure function
//! of what its launcher measured ([`report`]) and of what the kernel says ([`host`]). Nothing is written down: a handler
//! that comes later begins again, and the guest finds the next metrics in the same place.

mod channel;
mod document;
mod host;
mod report;
mod requests;
mod serve;
mod source;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Layout;
use tokio_util::task::AbortOnDropHandle;

use crate::domains::Owner;
use crate::launchers::Launchers;
use crate::prepare::Folders;
use source::Source;

/// How a guest wants to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// On a disk.
    pub disk: bool,
    /// On a channel, when it asks.
    pub channel: bool,
}

impl Wish {
    /// What the instance wishes for; nothing, like most.
    pub fn of(vmi: &VirtualMachineInstance) -> Option<Self> {
        let mut volumes = vmi.spec.volumes.iter().flatten();
        let disk = volumes.any(|volume| volume.downward_metrics.is_some());
        let channel = vmi.spec.domain.devices.downward_metrics.is_some();
        (disk || channel).then_some(Self { disk, channel })
    }
}

/// Whoever tells guests.
pub struct Tellers {
    shared: Arc<Shared>,
    tasks: Mutex<BTreeMap<String, Teller>>,
}

/// What all of them share.
struct Shared {
    node: String,
    launchers: Arc<Launchers>,
    folders: Folders,
    layout: Layout,
}

struct Teller {
    owner: Owner,
    /// Its end is the teller's.
    _task: AbortOnDropHandle<()>,
}

impl Tellers {
    /// Tells nobody yet. The layout is that of launchers.
    pub fn new(node: &str, launchers: Arc<Launchers>, folders: Folders, layout: Layout) -> Self {
        let shared = Shared { node: node.to_owned(), launchers, folders, layout };
        Self { shared: Arc::new(shared), tasks: Mutex::default() }
    }

    /// Tells the guest of this machine from now on.
    pub fn tell(&self, owner: &Owner, wish: Wish) {
        let mut tasks = self.lock();
        if tasks.get(&owner.uid).is_some_and(|teller| teller.owner == *owner) {
            return;
        }
        let source = Source::new(self.shared.clone(), owner.clone());
        let task = AbortOnDropHandle::new(tokio::spawn(serve::serve(source, wish)));
        tasks.insert(owner.uid.clone(), Teller { owner: owner.clone(), _task: task });
    }

    /// Tells the guest no longer.
    pub fn leave(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Teller>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_who_asks_is_told() {
        let disk =
            json!([{"name": "a", "emptyDisk": {"capacity": "1Mi"}}, {"name": "m", "downwardMetrics": {}}]);
        let others = json!([{"name": "a", "downwardAPI": {"fields": []}}]);
        for (devices, volumes, expected) in [
            (json!({}), json!(null), None),
            (json!({}), others, None),
            (json!({}), disk.clone(), Some(Wish { disk: true, channel: false })),
            (json!({"downwardMetrics": {}}), json!([]), Some(Wish { disk: false, channel: true })),
            (json!({"downwardMetrics": {}}), disk, Some(Wish { disk: true, channel: true })),
        ] {
            let spec = json!({"domain": {"devices": devices}, "volumes": volumes});
            let vmi = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec})).unwrap();
            assert_eq!(Wish::of(&vmi), expected, "{spec}");
        }
    }
}
