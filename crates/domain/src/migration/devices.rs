//! Devices that arrive: the guest's side from there, the host's side from here.

use super::Arrival;
use crate::domain::devices::{Balloon, Devices};
use crate::domain::disk::{Cache, Disk, Io};
use crate::domain::network::{Interface, NetBackend};

impl Arrival<'_> {
    pub(super) fn disks(&mut self) -> Vec<Disk> {
        let mut disks = Vec::new();
        for disk in &self.source.disks {
            let own = self.own.disks.iter().find(|own| own.name == disk.name);
            match own.filter(|own| own.image.is_some() || disk.image.is_none()) {
                Some(own) => disks.push(arrived(disk, own)),
                None => {
                    self.refuse(format!("disks.{}", disk.name), "its volume is not here");
                    disks.push(disk.clone());
                }
            }
        }
        disks
    }

    pub(super) fn interfaces(&mut self) -> Vec<Interface> {
        let mut cards = Vec::new();
        for card in &self.source.interfaces {
            let what = format!("interfaces.{}", card.name);
            let Some(own) = self.own.interfaces.iter().find(|own| own.name == card.name) else {
                self.refuse(what, "its network is not here");
                continue;
            };
            if let NetBackend::Tap { fds, .. } = &own.backend
                && !fds.is_empty()
                && fds.len() != card.queues as usize
            {
                let (queues, open) = (card.queues, fds.len());
                self.refuse(what, format_args!("it has {queues} queues and its tap device here {open}"));
            }
            cards.push(Interface { backend: own.backend.clone(), ..card.clone() });
        }
        cards
    }

    pub(super) fn devices(&mut self) -> Devices {
        let (source, own) = (&self.source.devices, &self.own.devices);
        let mut devices = source.clone();
        if let (Some(console), Some(here)) = (&mut devices.console, &own.console) {
            *console = here.clone();
        }
        for channel in &mut devices.channels {
            if let Some(here) = own.channels.iter().find(|here| here.name == channel.name) {
                channel.socket.clone_from(&here.socket);
            }
        }
        if let (Some(graphics), Some(here)) = (&mut devices.graphics, &own.graphics) {
            graphics.socket.clone_from(&here.socket);
        }
        if let (Some(tpm), Some(here)) = (&mut devices.tpm, &own.tpm) {
            tpm.socket.clone_from(&here.socket);
            tpm.state.clone_from(&here.state);
        }
        if let (Some(balloon), Some(here)) = (&mut devices.balloon, &own.balloon) {
            *balloon = Balloon { stats_period: here.stats_period, ..balloon.clone() };
        }
        for (redirect, here) in devices.usb_redirects.iter_mut().zip(&own.usb_redirects) {
            redirect.clone_from(here);
        }
        for filesystem in &mut devices.filesystems {
            match own.filesystems.iter().find(|here| here.name == filesystem.name) {
                Some(here) => filesystem.socket.clone_from(&here.socket),
                None => {
                    let what = format!("devices.filesystems.{}", filesystem.name);
                    self.obstacles.push(super::Obstacle { what, reason: "its volume is not here".into() });
                }
            }
        }
        devices
    }
}

/// A disk whose bytes are reached as this host does.
fn arrived(source: &Disk, own: &Disk) -> Disk {
    // The guest knows whether its writes are cached, but not by whom.
    let cache = match (source.cache, own.cache) {
        (Cache::None, Cache::Writethrough | Cache::Writeback) => Cache::Writeback,
        (cache, _) => cache,
    };
    let native = own.io == Some(Io::Native) && cache != Cache::None;
    let image = source.image.as_ref().and(own.image.clone());
    Disk {
        image,
        cache,
        io: own.io.filter(|_| !native),
        discard: own.discard,
        hotplugged: own.hotplugged,
        ..source.clone()
    }
}
