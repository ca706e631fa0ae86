//! What a launcher may do: user 107, and one capability at most.

use std::{
    os::fd::OwnedFd,
    sync::mpsc,
    thread::{self, JoinHandle},
};

use kubevirt_network::{
    LAUNCHER_USER, NetNs, Wiring,
    dhcp::{DhcpError, Settings, serve},
    tap,
};
use rustix::{
    fs::{Gid, Uid},
    thread::{
        CapabilitySet, CapabilitySets, LinkNameSpaceType, move_into_link_name_space, set_capabilities,
        set_keep_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
    },
};
use tokio::sync::oneshot;

use crate::ground::{Place, wait};

/// Makes the calling thread what a launcher is, for good.
fn become_launcher(capabilities: CapabilitySet) {
    let (user, group) = (Uid::from_raw(LAUNCHER_USER), Gid::from_raw(LAUNCHER_USER));
    set_keep_capabilities(true).unwrap();
    set_thread_groups(&[]).unwrap();
    set_thread_res_gid(group, group, group).unwrap();
    set_thread_res_uid(user, user, user).unwrap();
    let sets = CapabilitySets {
        effective: capabilities,
        permitted: capabilities,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).unwrap();
}

/// Opens a guest's tap without any capability.
pub fn open_tap(pod: &Place, wiring: &Wiring) -> Vec<OwnedFd> {
    let (name, queues, multi_queue) = (wiring.tap.clone().unwrap(), wiring.queues, wiring.multi_queue);
    pod.inside(move || {
        become_launcher(CapabilitySet::empty());
        tap::open(&name, queues, multi_queue).unwrap()
    })
}

/// DHCP servers that run until this is dropped.
pub struct Servers {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Serves DHCP with these capabilities.
pub fn start(
    netns: &NetNs,
    wiring: &Wiring,
    settings: &Settings,
    capabilities: CapabilitySet,
) -> Result<Servers, DhcpError> {
    // What phase 1 hands over is JSON.
    let wiring: Wiring = serde_json::from_str(&serde_json::to_string(wiring).unwrap()).unwrap();
    let (settings, (end, ended), (tell, told)) =
        (settings.clone(), oneshot::channel::<()>(), mpsc::channel());
    let file = wait(netns.run(NetNsFile::open)).unwrap();
    let thread = thread::spawn(move || {
        move_into_link_name_space(rustix::fd::AsFd::as_fd(&file.0), Some(LinkNameSpaceType::Network))
            .unwrap();
        become_launcher(capabilities);
        wait(async {
            match serve(&wiring, &settings) {
                Err(error) => tell.send(Err(error)).unwrap(),
                Ok(mut server) => {
                    tell.send(Ok(())).unwrap();
                    tokio::select! {
                        error = server.failed() => panic!("DHCP ended: {error}"),
                        _ = ended => {}
                    }
                }
            }
        });
    });
    told.recv().unwrap().map(|()| Servers { end: Some(end), thread: Some(thread) })
}

struct NetNsFile(std::fs::File);

impl NetNsFile {
    fn open() -> Self {
        Self(std::fs::File::open("/proc/thread-self/ns/net").unwrap())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "a DHCP server failed");
        }
    }
}
