//! The board: machine type, accelerator, identity, clock and what ends it.

use super::args::{Args, escape, on_off};
use crate::domain::devices::WatchdogAction;
use crate::domain::firmware::{ClockBase, Firmware, PitPolicy};
use crate::domain::{Accelerator, Architecture, Domain};

pub(super) fn add(domain: &Domain, args: &mut Args) {
    args.flag("-no-user-config");
    args.flag("-nodefaults");
    args.option("-machine", machine(domain));
    match domain.machine.accelerator {
        Accelerator::Kvm => args.option("-accel", "kvm"),
        Accelerator::Tcg { buffer } => args.option("-accel", format!("tcg,thread=multi,tb-size={buffer}")),
    }
    if let Some(uuid) = &domain.identity.uuid {
        args.option("-uuid", uuid.clone());
    }
    rtc(domain, args);
    args.flag("-no-shutdown");
    let menu = if domain.lifecycle.start_paused { ",menu=on,splash-time=10000" } else { "" };
    args.option("-boot", format!("strict=on{menu}"));
    actions(domain, args);
    if domain.machine.no_pci_hole64 {
        args.option("-global", "q35-pcihost.pci-hole64-size=0");
    }
}

fn machine(domain: &Domain) -> String {
    let machine = &domain.machine;
    let mut options = vec![machine.machine_type.clone(), "usb=off".into(), "dump-guest-core=off".into()];
    let mut option = |name: &str, value: &str| options.push(format!("{name}={value}"));
    if domain.memory.nodes.is_empty() {
        option("memory-backend", "ram0");
    }
    if domain.memory.no_merge {
        option("mem-merge", "off");
    }
    match machine.architecture {
        Architecture::Amd64 => option("vmport", "off"),
        Architecture::Arm64 => option("gic-version", "max"),
        Architecture::S390x => {}
    }
    if machine.architecture != Architecture::S390x {
        option("acpi", on_off(machine.acpi));
    }
    let switches = [("smm", machine.smm), ("hpet", machine.hpet), ("pit", machine.pit)];
    for (name, on) in switches {
        if let Some(on) = on {
            option(name, on_off(on));
        }
    }
    if let Some(security) = &domain.launch_security {
        if security.needs_split_irqchip() {
            option("kernel-irqchip", "split");
        }
        option("confidential-guest-support", "lsec0");
    }
    match &domain.firmware {
        Firmware::Flash { .. } => {
            option("pflash0", "efi-code");
            option("pflash1", "efi-vars");
        }
        Firmware::Builtin { serial: true } => option("graphics", "off"),
        _ => {}
    }
    options.join(",")
}

fn rtc(domain: &Domain, args: &mut Args) {
    let clock = &domain.clock;
    let mut rtc = match &clock.base {
        ClockBase::Utc => "base=utc".to_owned(),
        ClockBase::Local => "base=localtime".to_owned(),
        ClockBase::At(date) => format!("base={}", escape(date)),
    };
    match clock.follows_guest {
        Some(true) => rtc.push_str(",clock=vm"),
        Some(false) => rtc.push_str(",clock=host"),
        None => {}
    }
    if clock.catch_up {
        rtc.push_str(",driftfix=slew");
    }
    args.option("-rtc", rtc);
    let policy = match clock.pit_policy.filter(|_| domain.is_kvm()) {
        Some(PitPolicy::Delay) => "delay",
        Some(PitPolicy::Discard) => "discard",
        None => return,
    };
    args.option("-global", format!("kvm-pit.lost_tick_policy={policy}"));
}

fn actions(domain: &Domain, args: &mut Args) {
    let mut actions = Vec::new();
    if domain.lifecycle.terminate_on_reboot {
        actions.push("reboot=shutdown");
    }
    if let Some(watchdog) = &domain.devices.watchdog {
        actions.push(match watchdog.action {
            WatchdogAction::Reset => "watchdog=reset",
            WatchdogAction::Poweroff => "watchdog=poweroff",
            WatchdogAction::Shutdown => "watchdog=shutdown",
        });
    }
    if !actions.is_empty() {
        args.option("-action", actions.join(","));
    }
}
