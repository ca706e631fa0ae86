//! What must be done to a machine that runs, so that it becomes what its VMI wants now.
//!
//! [`changes`] compares the domain that runs with the one that a fresh conversion gives. The answer is a list of
//! [`Change`]s in the order to make them, and what only a restart can bring. Each change says its steps for the
//! monitor and, once they are done, what it makes of the running domain:
//!
//! ```
//! # use kubevirt_domain::{Domain, change::{changes, Step}};
//! # fn sync(mut running: Domain, wanted: &Domain, mut perform: impl FnMut(Step) -> bool) -> Domain {
//! for change in changes(&running, wanted).list {
//!     if change.steps(&running).into_iter().all(&mut perform) {
//!         change.apply(&mut running);
//!     }
//! }
//! running
//! # }
//! ```
//!
//! The running domain is what a migration target starts with, so devices keep the place they were plugged into,
//! whatever place a fresh machine would give them.

mod apply;
mod capacity;
mod cards;
mod differences;
mod disks;
mod room;
mod settled;
mod steps;

use std::fmt;

use crate::domain::Domain;
use crate::domain::disk::Disk;
use crate::domain::host_device::HostDevice;
use crate::domain::network::Interface;
use crate::pinning::Pinning;
use crate::qemu::Command;
use room::Room;

/// Everything in which a running machine differs from what is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// What can be done now, in order.
    pub list: Vec<Change>,
    /// What cannot be done while the machine runs.
    pub restart: Vec<NeedsRestart>,
}

/// One thing that can be done to a running machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Take a disk out.
    DetachDisk(Box<Disk>),
    /// Take a network card out.
    DetachInterface(Box<Interface>),
    /// Take a host device out.
    DetachHostDevice(Box<HostDevice>),
    /// Replace the medium of a CD-ROM drive: this is the drive as it will be, empty if it has no image.
    ChangeMedium(Box<Disk>),
    /// Put a disk in.
    AttachDisk {
        /// The disk, in its place.
        disk: Box<Disk>,
        /// Socket of the host's service for persistent reservations, if any disk may make them.
        reservations: Option<String>,
    },
    /// Put a network card in, in its place.
    AttachInterface(Box<Interface>),
    /// Put a host device in, in its place.
    AttachHostDevice(Box<HostDevice>),
    /// Plug in or pull out the cable of a network card.
    SetLink {
        /// Name of the interface.
        interface: String,
        /// Whether the cable is in.
        up: bool,
    },
    /// Let a disk grow.
    ResizeDisk {
        /// Name of the disk.
        disk: String,
        /// Bytes it will have.
        size: u64,
    },
    /// Fill empty sockets with CPUs.
    PlugSockets {
        /// Sockets that will have CPUs.
        sockets: u32,
        /// Where all threads run from then on; none if they may run anywhere.
        pinning: Option<Pinning>,
    },
    /// Ask the guest to take this much of the memory that can grow.
    RequestMemory {
        /// Bytes beyond those at start.
        bytes: u64,
    },
}

/// What a change touches, for whoever may make some changes now and others later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Disks, network cards and host devices.
    Devices,
    /// Virtual CPUs, which need room in the pod.
    Cpus,
    /// Memory, which needs room in the pod.
    Memory,
}

/// A difference that only a restart removes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeedsRestart {
    /// What differs, as a path in the domain, such as `disks.root.serial`.
    pub what: String,
    /// Why it stays as it is.
    pub reason: String,
}

/// One step of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Hand an open file to QEMU under a name.
    PassFile {
        /// The file in the process that makes the change.
        fd: i32,
        /// Its name from then on.
        name: String,
    },
    /// Send a command to the monitor.
    Run(Command),
    /// Send a command that removes something. It is fine if that is gone already.
    Clean(Command),
    /// Ask the guest to let a device go and wait until it is out. It is fine if it is out already.
    Unplug {
        /// Name of the device.
        device: String,
    },
    /// Plug CPUs into the first free places until there are this many.
    PlugCpus {
        /// All virtual CPUs there will be.
        count: u32,
    },
}

/// Compares what runs with what is wanted.
pub fn changes(running: &Domain, wanted: &Domain) -> Changes {
    let mut plan = Plan::new(running, wanted);
    disks::detach(&mut plan);
    cards::detach(&mut plan);
    disks::media(&mut plan);
    disks::attach(&mut plan);
    cards::attach(&mut plan);
    cards::links(&mut plan);
    disks::resize(&mut plan);
    capacity::cpus(&mut plan);
    capacity::memory(&mut plan);
    plan.finish()
}

/// What must leave a machine before it can be migrated; a fresh sync on the other side puts the like back in.
pub fn before_migration(running: &Domain) -> Vec<Change> {
    let leaving = running.host_devices.iter().filter(|device| cards::is_movable(device));
    leaving.map(|device| Change::DetachHostDevice(Box::new(device.clone()))).collect()
}

impl Change {
    /// What it touches.
    pub fn scope(&self) -> Scope {
        match self {
            Self::PlugSockets { .. } => Scope::Cpus,
            Self::RequestMemory { .. } => Scope::Memory,
            _ => Scope::Devices,
        }
    }

    /// The steps that make it, in order. The first that fails ends it: then [`Change::undo`].
    pub fn steps(&self, running: &Domain) -> Vec<Step> {
        steps::of(self, running)
    }

    /// Commands that remove what steps that failed half-way may have left. Each of them may fail.
    pub fn undo(&self, running: &Domain) -> Vec<Command> {
        steps::undo(self, running)
    }

    /// Notes in the running domain that it was made.
    pub fn apply(&self, running: &mut Domain) {
        apply::apply(self, running);
    }
}

impl fmt::Display for NeedsRestart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.reason)
    }
}

/// A comparison under way.
struct Plan<'a> {
    wanted: &'a Domain,
    /// What the machine will be after the changes so far.
    after: Domain,
    room: Room,
    changes: Changes,
}

impl<'a> Plan<'a> {
    fn new(running: &Domain, wanted: &'a Domain) -> Self {
        Self { wanted, after: running.clone(), room: Room::of(running), changes: Changes::default() }
    }

    fn push(&mut self, change: Change) {
        change.apply(&mut self.after);
        self.changes.list.push(change);
    }

    fn needs_restart(&mut self, what: impl Into<String>, reason: impl fmt::Display) {
        let restart = NeedsRestart { what: what.into(), reason: reason.to_string() };
        self.changes.restart.push(restart);
    }

    fn finish(mut self) -> Changes {
        let rest = settled::settle(&self.after, self.wanted);
        for what in differences::between(&self.after, &rest) {
            self.needs_restart(what, "it cannot change while the machine runs");
        }
        self.changes
    }
}
