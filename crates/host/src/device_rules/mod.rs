//! Which devices the processes of a control group may use, in either version of control groups.

mod program;
mod v1;
mod v2;

use std::path::Path;

use rustix::fs::{major, minor};

use crate::cgroup::{Cgroups, Folder};

/// Devices that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// Block devices, or character devices.
    pub block: bool,
    /// Their major number; any if none.
    pub major: Option<u32>,
    /// Their minor number; any if none.
    pub minor: Option<u32>,
    /// What may be done with them.
    pub access: Access,
}

/// What may be done with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Only make files that stand for it, which nobody without privileges can do anyway.
    Make,
    /// All.
    All,
}

impl Rule {
    /// Everything with one block device.
    pub fn block(device: u64) -> Self {
        Self { block: true, major: Some(major(device)), minor: Some(minor(device)), access: Access::All }
    }

    /// Everything with one character device.
    pub fn character(device: u64) -> Self {
        Self { block: false, ..Self::block(device) }
    }
}

/// What every container may do: make any file, and use the devices that a runtime gives to all.
pub fn of_every_container() -> Vec<Rule> {
    let make = |block| Rule { block, major: None, minor: None, access: Access::Make };
    let character = |major, minor| Rule { block: false, major: Some(major), minor, access: Access::All };
    // null, zero, full, random, urandom, tty, console, ptmx, terminals, tun.
    let known = [(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 1), (5, 2), (10, 200)];
    let known = known.map(|(major, minor)| character(major, Some(minor)));
    [make(false), make(true), character(136, None)].into_iter().chain(known).collect()
}

/// Lets the processes of a control group use devices, besides those that they may use already.
///
/// In version 2 there is one list for all, which cannot be read back, so `others` must hold every other device that
/// they may use. Whether anything was changed is returned.
pub fn allow(
    groups: &Cgroups,
    devices: &[Rule],
    others: impl FnOnce() -> Vec<Rule>,
) -> std::io::Result<bool> {
    match groups.folder("devices") {
        None => Ok(false),
        Some(Folder::V1(folder)) => v1::allow(folder, devices),
        Some(Folder::V2(folder)) => {
            let mut rules = others();
            rules.extend(of_every_container());
            rules.extend_from_slice(devices);
            set_v2(folder, &rules)
        }
    }
}

/// Takes the use of devices back; in version 2, by setting the list of those that remain.
pub fn deny(groups: &Cgroups, devices: &[Rule], others: impl FnOnce() -> Vec<Rule>) -> std::io::Result<bool> {
    match groups.folder("devices") {
        None => Ok(false),
        Some(Folder::V1(folder)) => v1::deny(folder, devices),
        Some(Folder::V2(folder)) => {
            let mut rules = others();
            rules.retain(|rule| !devices.contains(rule));
            rules.extend(of_every_container());
            set_v2(folder, &rules)
        }
    }
}

/// Some runtimes put a container into a group within its own, and a program on both.
fn set_v2(folder: &Path, rules: &[Rule]) -> std::io::Result<bool> {
    let program = program::assemble(rules);
    let own = folder.parent().filter(|_| folder.file_name().is_some_and(|name| name == "container"));
    let own = own.filter(|own| own.extension().is_some_and(|end| end == "scope"));
    let above = own.map_or(Ok(false), |own| v2::set(own, &program))?;
    Ok(v2::set(folder, &program)? || above)
}
