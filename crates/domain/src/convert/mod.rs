//! From a VMI and facts to a domain, one topic per module.
//!
//! Admission has accepted the VMI. What this host, this QEMU or this program cannot do is refused here, all of it
//! at once; nothing that was asked for is left out silently.

mod boot;
mod channels;
mod clock;
mod cpu;
mod disk_options;
mod disks;
mod display;
mod features;
mod firmware;
mod guest_devices;
mod host_devices;
mod interfaces;
mod io_threads;
mod machine;
mod memory;
mod numa;
mod placement;
mod security;
mod smbios;
mod targets;
mod volumes;

use std::collections::BTreeMap;
use std::fmt::Display;

use kubevirt_api::names::annotations;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::domain::DomainSpec;

use crate::domain::cpu::Topology;
use crate::domain::{Architecture, Domain, FileContent, Identity, VirtioModel};
use crate::error::{ConvertError, Unsupported};
use crate::facts::{HostFacts, QemuFacts};
use crate::layout::Layout;
use crate::pci::{Address, Counts, PciLayout, PciPlan, Role};
use crate::qemu;

/// Turns a VMI into a domain, or says everything that stands in the way.
pub fn convert(
    vmi: &VirtualMachineInstance,
    host: &HostFacts,
    qemu: &QemuFacts,
    layout: &Layout,
) -> Result<Domain, ConvertError> {
    let mut c = Conversion::new(vmi, host, qemu, layout);
    let domain = build(&mut c);
    if c.problems.is_empty() {
        c.check_devices(&domain);
    }
    if c.problems.is_empty() { Ok(domain) } else { Err(ConvertError { problems: c.problems }) }
}

/// One conversion: what it reads, and what it has found so far.
struct Conversion<'a> {
    vmi: &'a VirtualMachineInstance,
    spec: &'a DomainSpec,
    host: &'a HostFacts,
    qemu: &'a QemuFacts,
    layout: &'a Layout,
    architecture: Architecture,
    topology: Topology,
    pci: PciPlan,
    /// Addresses that the user wrote, by field.
    wished: BTreeMap<String, Address>,
    environment: BTreeMap<String, String>,
    files: Vec<FileContent>,
    problems: Vec<Unsupported>,
}

fn build(c: &mut Conversion<'_>) -> Domain {
    c.topology = cpu::topology(c);
    placement::plan(c);
    let io_threads = io_threads::assign(c);
    let memory = memory::convert(c);
    let (pinning, nodes) = numa::convert(c, &memory, &io_threads);
    let memory = crate::domain::memory::Memory { nodes, ..memory };
    let mut disks = disks::convert(c, &io_threads);
    let mut expanders = PciLayout::default();
    let host_devices = host_devices::convert(c, &memory.nodes, &mut expanders);
    let interfaces = interfaces::convert(c);
    boot::choose(&mut disks, &interfaces, &host_devices);
    let devices = guest_devices::convert(c, &disks, &host_devices, &io_threads);
    Domain {
        identity: c.identity(),
        machine: machine::convert(c),
        cpu: cpu::convert(c),
        firmware: firmware::convert(c),
        kernel: firmware::kernel(c),
        clock: clock::convert(c),
        smbios: smbios::convert(c),
        launch_security: security::convert(c),
        io_threads: io_threads.count,
        disks,
        interfaces,
        host_devices,
        iommufd: c.host.iommufd.filter(|_| c.qemu_at_least(8, 2)),
        devices,
        pinning,
        lifecycle: machine::lifecycle(c),
        pci: PciLayout { expanders: expanders.expanders, ..c.pci.layout(memory.size) },
        memory,
        reservations: disks::reservations(c),
        environment: std::mem::take(&mut c.environment),
        files: std::mem::take(&mut c.files),
    }
}

impl<'a> Conversion<'a> {
    fn new(
        vmi: &'a VirtualMachineInstance,
        host: &'a HostFacts,
        qemu: &'a QemuFacts,
        layout: &'a Layout,
    ) -> Self {
        let mut conversion = Self {
            vmi,
            spec: &vmi.spec.domain,
            host,
            qemu,
            layout,
            architecture: host.architecture,
            topology: Topology::default(),
            pci: PciPlan::new(host.architecture, Counts::default(), false),
            wished: BTreeMap::new(),
            environment: BTreeMap::new(),
            files: Vec::new(),
            problems: Vec::new(),
        };
        if let Some(name) = vmi.spec.architecture.as_deref().filter(|name| !name.is_empty()) {
            match Architecture::from_name(name) {
                Some(architecture) => conversion.architecture = architecture,
                None => conversion.unsupported("spec.architecture", format_args!("{name:?} is not known")),
            }
        }
        conversion
    }

    /// Notes a wish that cannot be met.
    fn unsupported(&mut self, field: impl Into<String>, reason: impl Display) {
        self.problems.push(Unsupported { field: field.into(), reason: reason.to_string() });
    }

    /// Whether QEMU is at least of this version.
    fn qemu_at_least(&self, major: u32, minor: u32) -> bool {
        self.qemu.version >= (major, minor)
    }

    /// Refuses a field whose feature came with a later QEMU.
    fn require_qemu(&mut self, field: &str, what: &str, (major, minor): (u32, u32)) {
        if !self.qemu_at_least(major, minor) {
            let (has, minor_has) = self.qemu.version;
            let reason = format!("{what} needs QEMU {major}.{minor}, this is {has}.{minor_has}");
            self.unsupported(field, reason);
        }
    }

    /// The place of a device; where there is none, that is noted and any address stands in.
    fn place(&mut self, field: &str, role: Role) -> Address {
        if let Some(address) = self.wished.get(field) {
            return *address;
        }
        self.pci.place(role).unwrap_or_else(|error| {
            self.unsupported(field, error);
            Address::Ccw(0)
        })
    }

    fn annotation(&self, name: &str) -> Option<&'a str> {
        self.vmi.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }

    fn uid(&self) -> &'a str {
        self.vmi.metadata.uid.as_deref().unwrap_or("")
    }

    fn name(&self) -> &'a str {
        self.vmi.metadata.name.as_deref().unwrap_or("")
    }

    fn namespace(&self) -> &'a str {
        self.vmi.metadata.namespace.as_deref().unwrap_or("default")
    }

    fn identity(&self) -> Identity {
        Identity {
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
            uid: self.uid().to_owned(),
            uuid: self.spec.firmware.as_ref().and_then(|firmware| text(&firmware.uuid)),
        }
    }

    fn virtio(&self) -> VirtioModel {
        match (self.architecture, self.spec.devices.use_virtio_transitional) {
            (Architecture::S390x, _) => VirtioModel::Ccw,
            (_, Some(true)) => VirtioModel::Transitional,
            _ => VirtioModel::Modern,
        }
    }

    fn is_kvm(&self) -> bool {
        self.host.kvm && self.architecture == self.host.architecture
    }

    /// A queue for each virtual CPU, as QEMU would have it; said aloud, since it must stay when CPUs are plugged.
    fn queues(&self, most: u32) -> u32 {
        self.topology.vcpus().clamp(1, most)
    }

    fn has_dedicated_cpus(&self) -> bool {
        self.spec.cpu.as_ref().is_some_and(|cpu| cpu.dedicated_cpu_placement == Some(true))
    }

    fn isolates_emulator(&self) -> bool {
        self.has_dedicated_cpus()
            && self.spec.cpu.as_ref().is_some_and(|cpu| cpu.isolate_emulator_thread == Some(true))
    }

    fn is_realtime(&self) -> bool {
        self.spec.cpu.as_ref().is_some_and(|cpu| cpu.realtime.is_some())
    }

    fn is_efi(&self) -> bool {
        let chosen = self.spec.firmware.as_ref().and_then(|firmware| firmware.bootloader.as_ref());
        match self.architecture {
            Architecture::Arm64 => true,
            Architecture::Amd64 => chosen.is_some_and(|bootloader| bootloader.efi.is_some()),
            Architecture::S390x => false,
        }
    }

    fn on_root_complex_only(&self) -> bool {
        self.annotation(annotations::PLACE_PCI_DEVICES_ON_ROOT_COMPLEX) == Some("true")
    }

    /// Refuses devices that this QEMU was built without.
    fn check_devices(&mut self, domain: &Domain) {
        if self.qemu.devices.is_empty() {
            return;
        }
        for (id, driver) in qemu::drivers(domain) {
            if !self.qemu.devices.contains(&driver) {
                self.unsupported(
                    "spec.domain.devices",
                    format_args!("{id} needs {driver}, which this QEMU lacks"),
                );
            }
        }
    }
}

/// Text that is there and not empty.
fn text(value: &Option<String>) -> Option<String> {
    value.clone().filter(|value| !value.is_empty())
}

/// A switch whose presence means on.
fn switch(state: &Option<kubevirt_api::vmi::features::FeatureState>) -> Option<bool> {
    state.as_ref().map(|state| state.enabled.unwrap_or(true))
}
