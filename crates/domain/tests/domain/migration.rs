//! A machine that migrates stays the same to its guest.

use kubevirt_domain::domain::Accelerator;
use kubevirt_domain::{Domain, HostFacts, Layout, QemuFacts, convert, for_migration_target, qemu};
use serde_json::{Map, Value, json};

use crate::draft::Draft;
use crate::support::{Case, cases};

/// What the guest sees: options, and devices without their links to the host.
fn guest_side(arguments: &[String]) -> Vec<String> {
    let seen = ["-machine", "-cpu", "-smp", "-m", "-uuid", "-rtc", "-device", "-smbios", "-append", "-numa"];
    let pairs = arguments.windows(2).filter(|pair| seen.contains(&pair[0].as_str()));
    pairs.map(|pair| pair.join(" ")).collect()
}

/// Another host, where every file lies elsewhere and taps have other names.
fn elsewhere(case: &Case) -> (HostFacts, Layout) {
    let mut host = case.host.clone();
    for (name, facts) in &mut host.interfaces {
        facts.tap = facts.tap.as_ref().map(|_| format!("tap-there-{name}"));
        facts.mtu = Some(1400);
    }
    (host.vhost_net, host.serial_log, host.balloon_stats_period) = (false, true, 3);
    host.smbios.version = "there".into();
    host.cpu.require.push("avx512f".into());
    let files = [&mut host.firmware.plain, &mut host.firmware.secure];
    for flash in files.into_iter().flatten() {
        flash.code = format!("/there{}", flash.code);
    }
    (host, Layout { private: "/there/private".into(), ephemeral: "/there/disks".into(), ..Layout::default() })
}

#[test]
fn every_stored_machine_stays_the_same_to_its_guest() {
    let (mut moved, mut strict) = (0, 0);
    for case in cases() {
        let Ok(source) = convert(&case.vmi, &case.host, &case.qemu, &Layout::default()) else { continue };
        let (host, layout) = elsewhere(&case);
        let own = convert(&case.vmi, &host, &case.qemu, &layout).unwrap();
        let stays = source.launch_security.is_some() || !source.host_devices.is_empty();
        match for_migration_target(&source, &own, &case.qemu) {
            Ok(target) => {
                let (here, there) = (qemu::arguments(&source), qemu::arguments(&target));
                assert_eq!(guest_side(&here), guest_side(&there), "{}", case.name);
                assert!(!there.join(" ").contains("/var/run/kubevirt-private/"), "{}", case.name);
                let incoming = qemu::incoming_arguments(&target);
                assert!(incoming.ends_with(&["-incoming".into(), "defer".into()]));
                // What the guest knows of the first host's CPU must be there on the next.
                let is_strict = incoming.iter().any(|argument| argument.contains(",enforce=on"));
                assert_eq!(is_strict, target.is_kvm() && target.cpu.is_of_host(), "{}", case.name);
                strict += u32::from(is_strict);
                moved += 1;
            }
            Err(error) => assert!(stays, "{}: {error}", case.name),
        }
    }
    assert!(moved > 40 && strict > 10, "{moved} {strict}");
}

#[test]
fn what_was_plugged_in_stays_in_its_place() {
    let start = Draft::new();
    let mut more = start.clone();
    for name in ["a", "b", "c"] {
        more.volume(name, "virtio");
    }
    more.card("second");
    more.grow(2, "512Mi");
    let mut running = start.domain();
    for change in kubevirt_domain::changes(&running, &more.domain()).list {
        change.apply(&mut running);
    }
    // One went; what came after it would sit elsewhere in a fresh machine.
    let fewer = more.without("/spec/domain/devices/disks", "a");
    for change in kubevirt_domain::changes(&running, &fewer.domain()).list {
        change.apply(&mut running);
    }
    let target = for_migration_target(&running, &fewer.domain(), &QemuFacts::default()).unwrap();
    assert_eq!(guest_side(&qemu::arguments(&running)), guest_side(&qemu::arguments(&target)));
    assert_ne!(guest_side(&qemu::arguments(&fewer.domain())), guest_side(&qemu::arguments(&target)));
    assert_eq!(kubevirt_domain::changes(&target, &fewer.domain()), Default::default());
}

#[test]
fn what_this_host_cannot_have_is_named() {
    let mut with = Draft::new();
    with.volume("data", "scsi");
    with.card("second");
    let source = with.domain();
    let mut other = Draft::new().domain();
    other.machine.accelerator = Accelerator::Kvm;
    other.firmware = kubevirt_domain::domain::firmware::Firmware::Rom { path: "/rom".into() };
    let machines = [("q35".to_owned(), "pc-q35-9.9".to_owned())].into();
    let mut old = source.clone();
    old.machine.machine_type = "pc-q35-7.2".into();
    let qemu = QemuFacts { machines, devices: ["VGA".into()].into(), ..QemuFacts::default() };
    let refused = for_migration_target(&old, &other, &qemu).unwrap_err().to_string();
    for expected in [
        "disks.data: its volume is not here",
        "interfaces.second: its network is not here",
        "machine.accelerator: one side runs on KVM",
        "firmware: the machine has another kind",
        "machine.machineType: this QEMU has no machine type \"pc-q35-7.2\"",
        "devices: scsi0 needs virtio-scsi-pci-non-transitional",
    ] {
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
}

/// A domain as a newer launcher may write it, and as an older one did.
fn newer(value: &Value) -> Value {
    match value {
        Value::Object(map) if map.len() < 2 => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), newer(value))).collect())
        }
        Value::Object(map) => {
            let mut more: Map<_, _> = map.iter().map(|(key, value)| (key.clone(), newer(value))).collect();
            more.insert("ofTheFuture".into(), json!({ "a": [1] }));
            Value::Object(more)
        }
        Value::Array(list) => list.iter().map(newer).collect(),
        other => other.clone(),
    }
}

fn older(value: &Value) -> Value {
    let empty = |value: &Value| value.is_null() || *value == json!([]) || *value == json!({});
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !empty(value));
            Value::Object(kept.map(|(key, value)| (key.clone(), older(value))).collect())
        }
        Value::Array(list) => list.iter().map(older).collect(),
        other => other.clone(),
    }
}

#[test]
fn launchers_of_other_versions_are_understood() {
    for case in cases() {
        let Ok(mut domain) = convert(&case.vmi, &case.host, &case.qemu, &Layout::default()) else { continue };
        // Not fields but free names.
        domain.environment.clear();
        if let Some(pinning) = &mut domain.pinning {
            pinning.io_threads.clear();
        }
        let stored = serde_json::to_value(&domain).unwrap();
        for other in [newer(&stored), older(&stored)] {
            let read = serde_json::from_value::<Domain>(other);
            assert_eq!(
                read.unwrap_or_else(|error| panic!("{}: {error}", case.name)),
                domain,
                "{}",
                case.name
            );
        }
    }
}
