//! A guest: a namespace at the other end of the tap, whose frames are carried as QEMU would carry them.

use std::{
    collections::BTreeMap,
    fs,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
    thread::{self, JoinHandle},
};

use kubevirt_network::{Wiring, tap};
use rustix::{
    event::{PollFd, PollFlags, poll},
    pipe::{PipeFlags, pipe_with},
};

use crate::{
    ground::{Ground, Place},
    launcher,
};

pub struct Guest {
    pub place: Place,
    cable: Option<(OwnedFd, JoinHandle<()>)>,
}

impl Guest {
    /// Plugs a guest in. Its interface `guest0` is up and has the hardware address of the wiring.
    pub fn new(ground: &Ground, wiring: &Wiring) -> Self {
        let place = Place::new();
        place.ip("tuntap add guest0 mode tap vnet_hdr");
        place.ip(&format!("link set guest0 address {} mtu {}", wiring.mac, wiring.mtu));
        let ours = place.inside(|| tap::open("guest0", 1, false)).unwrap().remove(0);
        let theirs = launcher::open_tap(&ground.pod, wiring).remove(0);
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let thread = thread::spawn(move || carry(&ours, &theirs, &stopped));
        place.ip("link set guest0 up");
        Self { place, cable: Some((stop, thread)) }
    }

    /// Asks for an address with a real DHCP client, sets it, and tells all that the client was told.
    pub fn dhcp(&self) -> BTreeMap<String, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("wires-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        let (script, told) = (folder.0.join("script"), folder.0.join("told"));
        let lines = format!(
            "#!/bin/sh\n[ \"$1\" = bound ] || exit 0\nenv > {}\nip addr add $ip/$mask dev $interface\n\
             [ -z \"$router\" ] || ip route add default via $router\n",
            told.display()
        );
        fs::write(&script, lines).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let script = script.to_str().unwrap().to_owned();
        let options = ["-f", "-n", "-q", "-t", "30", "-T", "2", "-i", "guest0", "-s", &script];
        let wanted =
            ["-O", "search", "-O", "staticroutes", "-O", "mtu", "-O", "ntpsrv", "-O", "tftp", "-O", "0xf0"];
        self.place.run("busybox", &[&["udhcpc"], &options[..], &wanted].concat());
        let text = fs::read_to_string(&told).unwrap();
        text.lines()
            .filter_map(|line| line.split_once('='))
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect()
    }
}

/// A folder that is gone when this is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Guest {
    /// As [`Guest::dhcp`], once more.
    pub fn dhcp_again(&self) -> BTreeMap<String, String> {
        self.place.ip("addr flush dev guest0");
        self.dhcp()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.cable.take() {
            drop(stop);
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the cable broke");
        }
    }
}

/// Carries frames between two taps until the other end of `stopped` is closed.
fn carry(one: &OwnedFd, other: &OwnedFd, stopped: &OwnedFd) {
    let mut frame = vec![0; 70_000];
    loop {
        let mut waiting = [
            PollFd::new(one, PollFlags::IN),
            PollFd::new(other, PollFlags::IN),
            PollFd::new(stopped, PollFlags::IN),
        ];
        rustix::io::retry_on_intr(|| poll(&mut waiting, None)).unwrap();
        if !waiting[2].revents().is_empty() {
            return;
        }
        for (from, to) in [(one.as_fd(), other.as_fd()), (other.as_fd(), one.as_fd())] {
            while let Ok(length) = rustix::io::read(from, &mut frame[..]) {
                // As on any cable, what the other end does not take is lost.
                let _ = rustix::io::write(to, &frame[..length]);
            }
        }
    }
}
