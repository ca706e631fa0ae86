//! A real QEMU accepts the arguments: it starts stopped, answers on its monitor and quits.
//!
//! Every case that needs nothing of the host but files runs here, without KVM. Only where QEMU is not installed is
//! the test left out, with a message.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use crate::support::{Case, cases};
use kubevirt_domain::domain::disk::{Disk, DiskBus, Image, ImageFormat, Location};
use kubevirt_domain::domain::firmware::Firmware;
use kubevirt_domain::domain::network::NetBackend;
use kubevirt_domain::domain::{Accelerator, Architecture, Domain};
use kubevirt_domain::facts::QemuFacts;
use kubevirt_domain::{HostFacts, Layout, convert, qemu};
use serde_json::{Value, json};

#[test]
fn qemu_accepts_the_arguments() {
    accepts(Architecture::Amd64, 20);
}

#[test]
fn qemu_accepts_the_arguments_on_arm64() {
    // Such a machine needs its firmware, which comes apart from QEMU.
    accepts(Architecture::Arm64, usize::from(Path::new("/usr/share/AAVMF/AAVMF_CODE.fd").exists()));
}

#[test]
fn qemu_accepts_the_arguments_on_s390x() {
    accepts(Architecture::S390x, 1);
}

fn accepts(architecture: Architecture, at_least: usize) {
    let program = architecture.qemu_program();
    let Some(facts) = installed(program) else {
        eprintln!("LEFT OUT: {program} is not installed, so it has not seen the arguments");
        return;
    };
    let of_architecture = |case: &Case| {
        let name = case.vmi.spec.architecture.as_deref().unwrap_or("amd64");
        Architecture::from_name(name) == Some(architecture)
    };
    let mut accepted = 0;
    for case in cases().into_iter().filter(of_architecture) {
        let folder = Folder::new(&case.name);
        let Some(domain) = startable(&case, &facts, &folder) else { continue };
        folder.fill(&domain);
        let (status, output) = folder.start(&domain, Vec::new());
        assert!(status, "{}: {output}\n{}", case.name, qemu::arguments(&domain).join("\n"));
        accepted += 1;
    }
    println!("{program} accepted {accepted} machines");
    assert!(accepted >= at_least, "only {accepted} cases could be tried");
}

#[test]
fn qemu_takes_disks_and_cards_later() {
    let Some(facts) = installed(Architecture::Amd64.qemu_program()) else {
        eprintln!("LEFT OUT: QEMU is not installed, so nothing was added to a machine that runs");
        return;
    };
    for name in ["hotplug", "io-threads-auto", "interfaces"] {
        let case = cases().into_iter().find(|case| case.name == name).unwrap();
        let folder = Folder::new(&format!("later-{name}"));
        let mut case = case;
        for volume in case.host.volumes.values_mut() {
            volume.block = false;
        }
        let mut domain = startable(&case, &facts, &folder).unwrap();
        folder.fill(&domain);
        let (disks, cards) = (domain.disks.clone(), domain.interfaces.clone());
        let hot = |disk: &Disk| !matches!(disk.bus, DiskBus::Sata { .. });
        domain.disks.retain(|disk| !hot(disk));
        domain.interfaces.clear();
        let disks = disks.iter().filter(|disk| hot(disk)).flat_map(|disk| qemu::attach_disk(&domain, disk));
        let cards = cards.iter().flat_map(|card| qemu::attach_interface(&domain, card));
        let commands: Vec<_> = disks.chain(cards).collect();
        assert!(commands.len() > 1);
        let (status, output) = folder.start(&domain, commands);
        assert!(status, "{name}: {output}");
    }
}

#[test]
fn qemu_takes_root_complexes_on_numa_nodes() {
    if installed(Architecture::Amd64.qemu_program()).is_none() {
        eprintln!("LEFT OUT: QEMU is not installed, so it has not seen a machine with expanders");
        return;
    }
    let case = cases().into_iter().find(|case| case.name == "numa-pci").unwrap();
    let folder = Folder::new("expanders");
    let mut domain = convert(&case.vmi, &case.host, &case.qemu, &folder.layout()).unwrap();
    // The host's devices, huge pages and nodes stay behind; what the guest sees of its nodes remains.
    domain.host_devices.clear();
    domain.iommufd = None;
    domain.machine.accelerator = Accelerator::Tcg { buffer: 32 };
    domain.cpu.model = "max".into();
    domain.cpu.hints = Default::default();
    domain.memory.backing = Default::default();
    domain.memory.size = 256 << 20;
    for node in &mut domain.memory.nodes {
        (node.size, node.host_node) = (128 << 20, None);
    }
    domain.devices.firmware_log = Some(folder.path("firmware.log"));
    assert_eq!(domain.pci.expanders.len(), 2);
    folder.fill(&domain);
    let (status, output) = folder.start(&domain, Vec::new());
    assert!(status, "{output}");
}

#[test]
fn firmware_numbers_buses_as_we_number_ports() {
    let Some(facts) = installed(Architecture::Amd64.qemu_program()) else {
        eprintln!("LEFT OUT: QEMU is not installed, so no firmware has numbered the buses");
        return;
    };
    let case = cases().into_iter().find(|case| case.name == "interfaces").unwrap();
    let folder = Folder::new("buses");
    let domain = startable(&case, &facts, &folder).unwrap();
    folder.fill(&domain);
    let mut child = folder.spawn(&domain);
    let (mut input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    input
        .write_all(b"{\"execute\":\"qmp_capabilities\"}{\"execute\":\"cont\"}{\"execute\":\"query-pci\"}")
        .unwrap();
    let started = Instant::now();
    let mut buses = BTreeMap::new();
    for line in output.lines() {
        let answer: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let Some(roots) = answer["return"].as_array() else { continue };
        let bridges = roots.iter().flat_map(|root| root["devices"].as_array().into_iter().flatten());
        buses = bridges.filter_map(secondary_bus).collect();
        if !buses.values().all(|bus| *bus == 0) || started.elapsed() > Duration::from_secs(60) {
            break;
        }
        thread::sleep(Duration::from_millis(100));
        input.write_all(b"{\"execute\":\"query-pci\"}").unwrap();
    }
    drop(input.write_all(b"{\"execute\":\"quit\"}"));
    child.wait().unwrap();
    let expected: BTreeMap<_, _> =
        (1..=u64::from(domain.pci.ports)).map(|port| (format!("pci.{port}"), port)).collect();
    assert_eq!(buses, expected);
}

/// Name of a root port and the number of the bus behind it.
fn secondary_bus(device: &Value) -> Option<(String, u64)> {
    let bus = device.get("pci_bridge")?["bus"]["secondary"].as_u64()?;
    Some((device["qdev_id"].as_str()?.to_owned(), bus))
}

/// Version, devices and machine types of the installed QEMU.
pub fn installed(program: &str) -> Option<QemuFacts> {
    let output = |argument: &[&str]| {
        let output = Command::new(program).args(argument).output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    let version = output(&["--version"])?;
    let mut numbers = version.split_whitespace().nth(3)?.split('.').map(|number| number.parse().unwrap_or(0));
    let quoted = |line: &str| Some(line.strip_prefix("name \"")?.split('"').next()?.to_owned());
    let devices: BTreeSet<String> =
        output(&["-M", "none", "-device", "help"])?.lines().filter_map(quoted).collect();
    let machine = |line: &str| {
        let name = line.split_whitespace().next()?.to_owned();
        let exact =
            line.split_once("(alias of ").and_then(|(_, rest)| rest.split(')').next()).unwrap_or(&name);
        Some((name.clone(), exact.to_owned()))
    };
    let machines = output(&["-machine", "help"])?.lines().filter_map(machine).collect();
    Some(QemuFacts { version: (numbers.next()?, numbers.next()?), devices, machines })
}

/// The case's machine as this QEMU can start it: without KVM, with files below a folder of its own.
fn startable(case: &Case, facts: &QemuFacts, folder: &Folder) -> Option<Domain> {
    let host = HostFacts { kvm: false, allow_emulation: true, vhost_net: false, ..case.host.clone() };
    let mut domain = convert(&case.vmi, &host, facts, &folder.layout()).ok()?;
    let block = |image: &Image| matches!(image.location, Location::Block(_));
    let needs_host = !domain.host_devices.is_empty()
        || domain.launch_security.is_some()
        || domain.kernel.is_some()
        || !domain.devices.filesystems.is_empty()
        || domain.memory.backing.huge_page.is_some()
        || domain.memory.size > 1 << 30
        || domain
            .interfaces
            .iter()
            .any(|interface| matches!(interface.backend, NetBackend::VhostUser { .. }))
        || domain.disks.iter().any(|disk| disk.image.as_ref().is_some_and(block));
    if let Firmware::Flash { code, vars, template, .. } = &mut domain.firmware {
        if !Path::new(code).exists() {
            return None;
        }
        *vars = folder.path("vars.fd");
        fs::copy(template, vars).ok()?;
    }
    // Those need a process and a device of the host; the rest of the machine does not.
    (domain.devices.tpm, domain.devices.vsock) = (None, None);
    domain.machine.accelerator = Accelerator::Tcg { buffer: 32 };
    (!needs_host).then_some(domain)
}

/// Files of one machine, gone when it is.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("kv-{}-{name}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    pub fn layout(&self) -> Layout {
        let path = self.path("f");
        Layout {
            private: path.clone(),
            ephemeral: path.clone(),
            container_disks: path.clone(),
            hotplug_disks: path.clone(),
            filesystems: path,
            ..Layout::default()
        }
    }

    /// Makes the images, tables and folders that the machine expects.
    pub fn fill(&self, domain: &Domain) {
        let sockets = domain.devices.channels.iter().map(|channel| &channel.socket);
        let tables = domain.smbios.acpi_tables.iter().map(|table| &table.path);
        let files = domain.smbios.fw_cfg.iter().map(|(_, path)| path).chain(tables);
        for path in sockets.chain(files.clone()) {
            fs::create_dir_all(Path::new(path).parent().unwrap()).unwrap();
        }
        for path in files {
            fs::write(path, [7; 64]).unwrap();
        }
        for image in domain.disks.iter().filter_map(|disk| disk.image.as_ref()) {
            self.make(image);
        }
    }

    fn make(&self, image: &Image) {
        let path = image.location.path();
        fs::create_dir_all(Path::new(path).parent().unwrap()).unwrap();
        if let Some(base) = &image.backing {
            self.make(base);
        }
        let format = if image.format == ImageFormat::Raw { "raw" } else { "qcow2" };
        let mut arguments = vec!["create".to_owned(), "-q".into(), "-f".into(), format.into()];
        if let Some(data) = &image.data {
            fs::create_dir_all(Path::new(data.path()).parent().unwrap()).unwrap();
            arguments.extend(["-o".into(), format!("data_file={},data_file_raw=on", data.path())]);
        }
        arguments.extend([path.to_owned(), "1M".into()]);
        assert!(Command::new("qemu-img").args(arguments).status().unwrap().success());
    }

    /// Starts QEMU with its monitor on standard input and output.
    pub fn spawn(&self, domain: &Domain) -> Child {
        self.spawn_with(domain, qemu::arguments(domain))
    }

    /// Starts QEMU for a machine with arguments that differ from the usual.
    pub fn spawn_with(&self, domain: &Domain, arguments: Vec<String>) -> Child {
        let arguments = arguments.into_iter().map(without_tap);
        let mut command = Command::new(domain.machine.architecture.qemu_program());
        command.args(arguments).args(["-S", "-qmp", "stdio"]).args(NATIVE_HOTPLUG).envs(&domain.environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Starts QEMU, greets it, sends what it needs before it runs, and ends it.
    fn start(&self, domain: &Domain, later: Vec<qemu::Command>) -> (bool, String) {
        let mut child = self.spawn(domain);
        let mut input = child.stdin.take().unwrap();
        let mut lines = vec![r#"{"execute":"qmp_capabilities"}"#.to_owned()];
        let commands = qemu::start_commands(domain);
        lines.extend(commands.into_iter().chain(later).map(|mut command| {
            if command.execute == "netdev_add" {
                command.arguments = json!({ "type": "hubport", "hubid": 1, "id": command.arguments["id"] });
            }
            serde_json::to_string(&command).unwrap()
        }));
        lines.push(r#"{"execute":"query-status"}"#.into());
        lines.push(r#"{"execute":"quit"}"#.into());
        // If QEMU is gone already, its output says why.
        drop(input.write_all((lines.join("\n") + "\n").as_bytes()));
        let output = child.wait_with_output().unwrap();
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let good = output.status.success() && out.contains("\"prelaunch\"") && !out.contains("\"error\"");
        (good, format!("{out}{error}"))
    }
}

/// Hotplug by the ports themselves instead of ACPI, where it makes a difference: a port that no guest has powered on
/// gives its device back at once.
const NATIVE_HOTPLUG: [&str; 2] = ["-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"];

/// A tap device needs rights that a test has not.
fn without_tap(argument: String) -> String {
    let id = argument.strip_prefix(r#"{"type":"tap","id":""#).and_then(|rest| rest.split('"').next());
    id.map(|id| format!(r#"{{"type":"hubport","id":"{id}","hubid":1}}"#)).unwrap_or(argument)
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
