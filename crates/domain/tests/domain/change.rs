//! What runs becomes what is wanted: each change by example, and any sequence of them.

use std::collections::{BTreeMap, BTreeSet};

use kubevirt_domain::change::{Change, Changes, Scope, Step, before_migration};
use kubevirt_domain::domain::disk::DiskBus;
use kubevirt_domain::facts::{InterfaceFacts, VolumeFacts};
use kubevirt_domain::pci::Address;
use kubevirt_domain::{Domain, changes};
use proptest::prelude::*;
use serde_json::json;

use crate::draft::{CARDS, DISKS, Draft, VOLUMES};

/// The steps of all changes as lines, and what needs a restart.
fn told(running: &Domain, changes: &Changes) -> Vec<String> {
    let mut running = running.clone();
    let mut lines = Vec::new();
    for change in &changes.list {
        for step in change.steps(&running) {
            lines.push(match step {
                Step::Run(command) => format!("{} {}", command.execute, command.arguments),
                Step::Clean(command) => format!("clean {} {}", command.execute, command.arguments),
                Step::Unplug { device } => format!("unplug {device}"),
                Step::PassFile { fd, name } => format!("pass {fd} {name}"),
                Step::PlugCpus { count } => format!("cpus {count}"),
            });
        }
        change.apply(&mut running);
    }
    lines.extend(changes.restart.iter().map(|restart| format!("restart {restart}")));
    lines
}

fn settle(running: &Domain, wanted: &Domain) -> (Vec<String>, Domain) {
    let list = changes(running, wanted);
    let lines = told(running, &list);
    let mut after = running.clone();
    list.list.iter().for_each(|change| change.apply(&mut after));
    (lines, after)
}

#[test]
fn nothing_differs_from_itself_even_if_facts_do() {
    let before = Draft::new();
    let mut after = before.clone();
    let facts = after.host.interfaces.get_mut("default").unwrap();
    (facts.tap, facts.fds, facts.mtu) = (Some("tap9".into()), vec![7], Some(9000));
    after.host.now = Some(1_700_000_000);
    after.host.smbios.version = "2".into();
    after.host.serial_log = true;
    after.host.translation_buffer = 64;
    after.host.volumes.insert("root".into(), VolumeFacts { preallocated: true, ..VolumeFacts::default() });
    after.set("/spec", "startStrategy", json!("Paused"));
    assert_eq!(changes(&before.domain(), &after.domain()), Changes::default());
}

#[test]
fn disks_come_and_go() {
    let without = Draft::new();
    let mut with = without.clone();
    with.volume("one", "scsi");
    with.volume("two", "virtio");
    let (lines, after) = settle(&without.domain(), &with.domain());
    assert_eq!(
        lines,
        [
            r#"blockdev-add {"cache":{"direct":true,"no-flush":false},"discard":"unmap","driver":"file","filename":"/var/run/kubevirt/hotplug-disks/one.img","node-name":"v-one-file","read-only":false}"#,
            r#"blockdev-add {"cache":{"direct":true,"no-flush":false},"discard":"unmap","driver":"raw","file":"v-one-file","node-name":"v-one","read-only":false}"#,
            r#"device_add {"bus":"scsi0.0","channel":0,"device_id":"drive-ua-one","drive":"v-one","driver":"scsi-hd","id":"disk-one","lun":0,"rerror":"stop","scsi-id":0,"werror":"stop","write-cache":"on"}"#,
            r#"blockdev-add {"cache":{"direct":true,"no-flush":false},"discard":"unmap","driver":"file","filename":"/var/run/kubevirt/hotplug-disks/two.img","node-name":"v-two-file","read-only":false}"#,
            r#"blockdev-add {"cache":{"direct":true,"no-flush":false},"discard":"unmap","driver":"raw","file":"v-two-file","node-name":"v-two","read-only":false}"#,
            r#"device_add {"addr":"0x0","bus":"pci.8","drive":"v-two","driver":"virtio-blk-pci-non-transitional","id":"disk-two","num-queues":1,"rerror":"stop","werror":"stop","write-cache":"on"}"#,
        ]
    );
    assert_eq!(settle(&after, &with.domain()).0, [""; 0]);
    let (lines, back) = settle(&after, &without.domain());
    assert_eq!(
        lines,
        [
            "unplug disk-one",
            r#"clean blockdev-del {"node-name":"v-one"}"#,
            r#"clean blockdev-del {"node-name":"v-one-file"}"#,
            "unplug disk-two",
            r#"clean blockdev-del {"node-name":"v-two"}"#,
            r#"clean blockdev-del {"node-name":"v-two-file"}"#,
        ]
    );
    assert_eq!(back, without.domain());
}

#[test]
fn what_cannot_be_plugged_needs_a_restart() {
    let before = Draft::new();
    type Edit = fn(&mut Draft);
    let cases: [(&str, Edit, &str); 12] = [
        ("disk on sata", |draft| draft.volume("new", "sata"), "disks.new: only virtio and scsi"),
        ("usb disk", |draft| draft.volume("new", "usb"), "disks.new: only virtio and scsi"),
        (
            "plain disk",
            |draft| {
                draft.push(DISKS, json!({ "name": "new", "disk": { "bus": "scsi" } }));
                draft.push(VOLUMES, json!({ "name": "new", "emptyDisk": { "capacity": "1Gi" } }));
            },
            "disks.new: only a hotplugged volume",
        ),
        ("root", |draft| *draft = draft.without(DISKS, "root"), "disks.root: it was there"),
        ("fewer cpus", |draft| draft.set("/spec/domain/cpu", "cores", json!(2)), "cpu.topology.cores: it"),
        ("cpus", |draft| draft.set("/spec/domain/cpu", "sockets", json!(5)), "cpu.topology.sockets: the"),
        ("model", |draft| draft.set("/spec/domain/cpu", "model", json!("Haswell")), "cpu.asked: it cannot"),
        (
            "memory",
            |draft| draft.set("/spec/domain/memory", "guest", json!("2Gi")),
            "memory.size: it is more",
        ),
        ("rng", |draft| draft.set("/spec/domain/devices", "rng", json!({})), "devices.rng: it cannot change"),
        (
            "card",
            |draft| draft.named(CARDS, "default")["model"] = json!("e1000"),
            "interfaces.default.model: it cannot change",
        ),
        (
            "serial",
            |draft| draft.named(DISKS, "root")["serial"] = json!("s"),
            "disks.root.serial: it cannot change",
        ),
        (
            "queues",
            |draft| draft.set("/spec/domain/devices", "networkInterfaceMultiqueue", json!(true)),
            "devices.cardQueues: it cannot change",
        ),
    ];
    for (name, change, expected) in cases {
        let mut after = before.clone();
        change(&mut after);
        if name == "cpus" {
            after.set("/spec/domain/cpu", "maxSockets", json!(8));
        }
        if name == "memory" {
            after.set("/spec/domain/memory", "maxGuest", json!("2Gi"));
        }
        let found = changes(&before.domain(), &after.domain());
        let restart: Vec<_> = found.restart.iter().map(ToString::to_string).collect();
        assert!(restart.iter().any(|line| line.starts_with(expected)), "{name}: {restart:?}");
        assert!(found.list.is_empty(), "{name}: {:?}", found.list);
    }
}

#[test]
fn media_are_changed() {
    let mut empty = Draft::new();
    empty.drive("cd");
    let mut full = empty.clone();
    full.medium("cd");
    let (lines, running) = settle(&empty.domain(), &full.domain());
    assert_eq!(
        lines,
        [
            r#"blockdev-open-tray {"force":true,"id":"disk-cd"}"#,
            r#"blockdev-remove-medium {"id":"disk-cd"}"#,
            r#"blockdev-add {"cache":{"direct":true,"no-flush":false},"driver":"file","filename":"/var/run/kubevirt/hotplug-disks/cd.img","node-name":"v-cd-file","read-only":true}"#,
            r#"blockdev-add {"cache":{"direct":true,"no-flush":false},"driver":"raw","file":"v-cd-file","node-name":"v-cd","read-only":true}"#,
            r#"blockdev-insert-medium {"id":"disk-cd","node-name":"v-cd"}"#,
            r#"blockdev-close-tray {"id":"disk-cd"}"#,
        ]
    );
    let mut other = full.clone();
    other.host.volumes.insert("cd".into(), VolumeFacts { block: true, ..VolumeFacts::default() });
    let (lines, _) = settle(&running, &other.domain());
    assert_eq!(lines.len(), 8);
    assert_eq!(lines[2], r#"clean blockdev-del {"node-name":"v-cd"}"#);
    assert_eq!(lines[6], r#"blockdev-insert-medium {"id":"disk-cd","node-name":"v-cd"}"#);
    let (lines, ejected) = settle(&running, &empty.domain());
    assert_eq!(lines.len(), 5);
    assert_eq!(ejected, empty.domain());
    // Without its drive, the medium goes and the drive stays.
    let (lines, _) = settle(&running, &Draft::new().domain());
    assert_eq!(lines[5], "restart disks.cd: it was there when the machine started");
}

#[test]
fn a_disk_is_replaced_by_another_of_its_name() {
    let (mut one, mut other) = (Draft::new(), Draft::new());
    one.volume("data", "scsi");
    other.volume("data", "virtio");
    let (lines, after) = settle(&one.domain(), &other.domain());
    assert_eq!(lines[0], "unplug disk-data");
    assert!(lines[5].contains("virtio-blk"), "{lines:?}");
    assert_eq!(after, other.domain());
}

#[test]
fn cards_come_and_go() {
    let before = Draft::new();
    let mut after = before.clone();
    after.card("second");
    after.host.interfaces.get_mut("second").unwrap().fds = vec![12];
    after.named(CARDS, "second")["state"] = json!("down");
    let (lines, running) = settle(&before.domain(), &after.domain());
    assert_eq!(lines[0], "pass 12 tap-second-0");
    assert_eq!(lines[1], r#"netdev_add {"fd":"tap-second-0","id":"host-second","type":"tap"}"#);
    assert!(lines[2].contains(r#""bus":"pci.2""#), "{lines:?}");
    assert_eq!(lines[3], r#"set_link {"name":"net-second","up":false}"#);
    after.named(CARDS, "second")["state"] = json!("up");
    assert_eq!(settle(&running, &after.domain()).0, [r#"set_link {"name":"net-second","up":true}"#]);
    after.named(CARDS, "second")["state"] = json!("absent");
    let gone = ["unplug net-second", r#"clean netdev_del {"id":"host-second"}"#];
    assert_eq!(settle(&running, &after.domain()).0, gone);
    // A card whose network is not there yet keeps waiting.
    let mut waiting = before.clone();
    waiting.card("third");
    *waiting.host.interfaces.get_mut("third").unwrap() =
        InterfaceFacts { pending: true, ..InterfaceFacts::default() };
    assert_eq!(changes(&before.domain(), &waiting.domain()), Changes::default());
}

#[test]
fn virtual_functions_leave_before_a_migration_and_come_back() {
    let before = Draft::new();
    let mut with = before.clone();
    with.card("fast");
    let card = with.named(CARDS, "fast").as_object_mut().unwrap();
    card.remove("masquerade");
    card.insert("sriov".into(), json!({}));
    with.host.interfaces.get_mut("fast").unwrap().pci_address = Some("0000:65:00.1".into());
    let (lines, mut running) = settle(&before.domain(), &with.domain());
    assert_eq!(
        lines,
        [
            r#"device_add {"addr":"0x0","bus":"pci.8","driver":"vfio-pci","host":"0000:65:00.1","id":"sriov-fast"}"#
        ]
    );
    let leaving = before_migration(&running);
    assert_eq!(leaving.len(), 1);
    leaving.iter().for_each(|change| change.apply(&mut running));
    assert_eq!(running, before.domain());
}

#[test]
fn cpus_and_memory_grow() {
    let before = Draft::new();
    let mut more = before.clone();
    more.grow(3, "512Mi");
    let found = changes(&before.domain(), &more.domain());
    assert_eq!(found.list.iter().map(Change::scope).collect::<Vec<_>>(), [Scope::Cpus, Scope::Memory]);
    let (lines, running) = settle(&before.domain(), &more.domain());
    let path = r#"{"path":"/machine/peripheral/virtiomem0","property":"requested-size","value":268435456}"#;
    assert_eq!(lines, ["cpus 3".to_owned(), format!("qom-set {path}")]);
    // The disks' queues are still those of the start, and nobody minds.
    assert_eq!(settle(&running, &more.domain()).0, [""; 0]);
    let DiskBus::Virtio { queues, .. } = running.disks[0].bus else { panic!() };
    assert_eq!(queues, Some(1));
    let lines = settle(&running, &before.domain()).0;
    assert_eq!(lines[1], "restart cpu.topology.sockets: CPUs cannot be taken from a machine that runs");
    assert!(lines[0].ends_with(r#""value":0}"#));
}

#[test]
fn disks_grow_with_their_volumes() {
    let with_size = |size: Option<u64>| {
        let mut draft = Draft::new();
        draft.host.volumes.insert("root".into(), VolumeFacts { size, room: size, ..VolumeFacts::default() });
        draft.domain()
    };
    let (lines, running) = settle(&with_size(Some(1 << 30)), &with_size(Some(2 << 30)));
    assert_eq!(lines, [r#"block_resize {"node-name":"v-root","size":2147483648}"#]);
    for size in [None, Some(1 << 30), Some(2 << 30)] {
        assert_eq!(settle(&running, &with_size(size)).0, [""; 0]);
    }
    assert_eq!(settle(&with_size(None), &with_size(Some(1 << 30))).0, [""; 0]);
}

#[test]
fn a_full_machine_says_so() {
    let mut many = Draft::new();
    for number in 0..20 {
        many.volume(&format!("data{number}"), "virtio");
    }
    let found = changes(&Draft::new().domain(), &many.domain());
    assert_eq!(found.list.len(), 4);
    assert_eq!(found.restart.len(), 16);
    assert_eq!(found.restart[0].reason, "there is no free place for it");
}

/// Where every device sits, by its kind and name.
fn places(domain: &Domain) -> BTreeMap<String, Address> {
    let disks = domain.disks.iter().filter_map(|disk| match disk.bus {
        DiskBus::Virtio { address, .. } => Some((format!("disk {}", disk.name), address)),
        _ => None,
    });
    let cards = domain.interfaces.iter().map(|card| (format!("card {}", card.name), card.address));
    disks.chain(cards).collect()
}

/// A machine with the chosen ones of ten volumes and five cards.
fn chosen(choice: u32) -> Draft {
    let mut draft = Draft::new();
    for number in (0..10).filter(|number| choice & (1 << number) != 0) {
        let bus = if number % 3 == 0 { "scsi" } else { "virtio" };
        draft.volume(&format!("data{number}"), bus);
    }
    for number in (10..15).filter(|number| choice & (1 << number) != 0) {
        draft.card(&format!("net{number}"));
    }
    draft
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_sequence_of_changes_is_sound(
        choices in prop::collection::vec(0..(1_u32 << 15), 1..6),
        unlucky in any::<u32>(),
    ) {
        let mut running = Draft::new().domain();
        for (round, choice) in choices.iter().enumerate() {
            let wanted = chosen(*choice).domain();
            let before = places(&running);
            let found = changes(&running, &wanted);
            // Some changes fail, such as when a guest does not let go; the rest must still be possible.
            for (index, change) in found.list.iter().enumerate() {
                let fails = unlucky.rotate_right((round * 7 + index) as u32) & 3 == 0;
                let comes = matches!(change, Change::AttachDisk { .. } | Change::AttachInterface(_));
                let mut next = running.clone();
                change.apply(&mut next);
                let addresses = places(&next);
                let distinct: BTreeSet<_> = addresses.values().collect();
                let collides = distinct.len() < addresses.len();
                if fails || (comes && collides) {
                    continue;
                }
                prop_assert!(!collides);
                running = next;
            }
            for (device, address) in places(&running) {
                prop_assert!(before.get(&device).is_none_or(|old| *old == address), "{} moved", device);
            }
            let units: Vec<_> = running.disks.iter().filter_map(|disk| match disk.bus {
                DiskBus::Scsi { unit } => Some(unit),
                _ => None,
            }).collect();
            prop_assert_eq!(units.iter().collect::<BTreeSet<_>>().len(), units.len());
        }
        // Without failures, two more looks settle it: one that makes the changes, one that finds none to make.
        let wanted = chosen(*choices.last().unwrap()).domain();
        for _ in 0..2 {
            changes(&running, &wanted).list.iter().for_each(|change| change.apply(&mut running));
        }
        prop_assert_eq!(changes(&running, &wanted).list, vec![]);
    }
}
