//! The domain that a machine migrates to: the machine that runs elsewhere, with the files and devices of this host.
//!
//! What the guest sees is the source's, down to the place of each device that was plugged in. What it does not see is
//! what this host's own conversion of the same VMI gives: paths, sockets, taps, host CPUs.

mod devices;

use std::fmt;

use crate::domain::firmware::{Firmware, KernelBoot, Smbios};
use crate::domain::memory::{Memory, NumaNode};
use crate::domain::{Accelerator, Domain, Identity};
use crate::facts::QemuFacts;
use crate::qemu;

/// Something of a machine that this host cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What it is, as a path in the domain, such as `disks.root`.
    pub what: String,
    /// Why it cannot be had.
    pub reason: String,
}

/// Everything that keeps a machine from coming here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", join(.obstacles))]
pub struct CannotReceive {
    /// The obstacles; never empty.
    pub obstacles: Vec<Obstacle>,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.reason)
    }
}

/// One line with all obstacles.
fn join(obstacles: &[Obstacle]) -> String {
    obstacles.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The domain to receive a machine with: `source` runs elsewhere, `own` is what its VMI comes to here.
///
/// Start it with [`qemu::incoming_arguments`]. What `own` wants beyond `source`, such as more CPUs, is a matter for
/// [`crate::changes`] once the machine is here.
pub fn for_migration_target(
    source: &Domain,
    own: &Domain,
    qemu: &QemuFacts,
) -> Result<Domain, CannotReceive> {
    let mut arrival = Arrival { source, own, obstacles: Vec::new() };
    let domain = arrival.domain();
    arrival.check(&domain, qemu);
    match arrival.obstacles.is_empty() {
        true => Ok(domain),
        false => Err(CannotReceive { obstacles: arrival.obstacles }),
    }
}

/// A machine on its way here.
struct Arrival<'a> {
    source: &'a Domain,
    own: &'a Domain,
    obstacles: Vec<Obstacle>,
}

impl Arrival<'_> {
    fn refuse(&mut self, what: impl Into<String>, reason: impl fmt::Display) {
        self.obstacles.push(Obstacle { what: what.into(), reason: reason.to_string() });
    }

    fn domain(&mut self) -> Domain {
        let (source, own) = (self.source, self.own);
        Domain {
            identity: Identity { uuid: source.identity.uuid.clone(), ..own.identity.clone() },
            machine: crate::domain::Machine { accelerator: self.accelerator(), ..source.machine.clone() },
            memory: self.memory(),
            firmware: self.firmware(),
            kernel: self.kernel(),
            smbios: smbios(&source.smbios, &own.smbios),
            disks: self.disks(),
            interfaces: self.interfaces(),
            devices: self.devices(),
            pinning: own.pinning.clone(),
            iommufd: own.iommufd,
            reservations: source.reservations.as_ref().and(own.reservations.clone()),
            environment: own.environment.clone(),
            files: own.files.clone(),
            ..source.clone()
        }
    }

    /// What no mixture of the two could mend.
    fn check(&mut self, domain: &Domain, qemu: &QemuFacts) {
        let source = self.source;
        if source.machine.architecture != self.own.machine.architecture {
            self.refuse("machine.architecture", "the VMI is of another architecture here");
        }
        if source.launch_security.is_some() {
            self.refuse("launchSecurity", "a protected guest cannot leave its host");
        }
        for device in &source.host_devices {
            self.refuse(format!("hostDevices.{}", device.name), "a host device cannot leave its host");
        }
        if let Some(pinning) = &domain.pinning
            && (pinning.vcpus.len() as u32) < source.cpu.topology.vcpus()
        {
            self.refuse("pinning.vcpus", "this host has too few dedicated CPUs for the machine");
        }
        if source.pinning.is_some() != domain.pinning.is_some() {
            self.refuse("pinning", "CPUs are dedicated on one side only");
        }
        let exact = &source.machine.machine_type;
        let mut types = qemu.machines.iter();
        if !qemu.machines.is_empty() && !types.any(|(alias, name)| alias == exact || name == exact) {
            self.refuse("machine.machineType", format_args!("this QEMU has no machine type {exact:?}"));
        }
        for (id, driver) in qemu::drivers(domain) {
            if !qemu.devices.is_empty() && !qemu.devices.contains(&driver) {
                self.refuse("devices", format_args!("{id} needs {driver}, which this QEMU lacks"));
            }
        }
    }

    fn accelerator(&mut self) -> Accelerator {
        let (has, own) = (self.source.machine.accelerator, self.own.machine.accelerator);
        if std::mem::discriminant(&has) != std::mem::discriminant(&own) {
            self.refuse("machine.accelerator", "one side runs on KVM and the other does not");
        }
        own
    }

    fn memory(&mut self) -> Memory {
        let (source, own) = (&self.source.memory, &self.own.memory);
        if source.nodes.len() != own.nodes.len() {
            let reason = "the NUMA nodes of the guest do not fit those of this host";
            self.refuse("memory.nodes", reason);
        }
        let here =
            |(node, own): (&NumaNode, &NumaNode)| NumaNode { host_node: own.host_node, ..node.clone() };
        Memory {
            nodes: source.nodes.iter().zip(&own.nodes).map(here).collect(),
            locked: own.locked,
            ..source.clone()
        }
    }

    fn firmware(&mut self) -> Firmware {
        match (&self.source.firmware, &self.own.firmware) {
            (Firmware::Builtin { .. }, Firmware::Builtin { .. }) => self.source.firmware.clone(),
            (Firmware::Rom { .. }, Firmware::Rom { .. }) => self.own.firmware.clone(),
            (Firmware::Flash { secure_boot: one, .. }, Firmware::Flash { secure_boot: other, .. })
                if one == other =>
            {
                self.own.firmware.clone()
            }
            _ => {
                self.refuse("firmware", "the machine has another kind of firmware than this host gives it");
                self.source.firmware.clone()
            }
        }
    }

    fn kernel(&mut self) -> Option<KernelBoot> {
        let source = self.source.kernel.clone()?;
        let Some(own) = &self.own.kernel else {
            self.refuse("kernel", "the kernel that it was started with is not here");
            return Some(source);
        };
        Some(KernelBoot { args: source.args, ..own.clone() })
    }
}

/// What the guest reads about its hardware is the source's, from files that lie here.
fn smbios(source: &Smbios, own: &Smbios) -> Smbios {
    let mut tables = source.clone();
    for table in &mut tables.acpi_tables {
        if let Some(here) = own.acpi_tables.iter().find(|here| here.signature == table.signature) {
            table.path.clone_from(&here.path);
        }
    }
    for (name, path) in &mut tables.fw_cfg {
        if let Some((_, here)) = own.fw_cfg.iter().find(|(here, _)| here == name) {
            path.clone_from(here);
        }
    }
    tables
}
