//! Addresses stay when devices of other kinds come and go, and none is given twice.

use std::collections::BTreeMap;

use kubevirt_domain::domain::Architecture;
use kubevirt_domain::pci::{Address, Counts, PciPlan, Role};
use proptest::prelude::*;

/// The addresses of all devices that come in lists, and of the two controllers.
fn addresses(architecture: Architecture, counts: Counts) -> BTreeMap<Role, Address> {
    let mut plan = PciPlan::new(architecture, counts, false);
    let cards = (0..counts.interfaces).map(Role::Interface).chain((0..counts.disks).map(Role::Disk));
    let passed = (0..counts.sriov).map(Role::Sriov).chain((0..counts.host_devices).map(Role::HostDevice));
    let shared = (0..counts.filesystems).map(Role::Filesystem);
    let once = [Role::Scsi, Role::Serial, Role::Balloon, Role::Usb, Role::Rng];
    let roles = cards.chain(passed).chain(shared).chain(once);
    roles.filter_map(|role| Some((role, plan.place(role).ok()?))).collect()
}

#[test]
fn the_first_devices_sit_where_guests_know_them() {
    let counts = Counts { interfaces: 2, disks: 2, ..Counts::default() };
    let places = addresses(Architecture::Amd64, counts);
    let expected = [
        (Role::Interface(0), "0000:01:00.0"),
        (Role::Interface(1), "0000:02:00.0"),
        (Role::Scsi, "0000:05:00.0"),
        (Role::Serial, "0000:06:00.0"),
        (Role::Disk(0), "0000:07:00.0"),
        (Role::Disk(1), "0000:08:00.0"),
        (Role::Balloon, "0000:00:14.0"),
    ];
    for (role, address) in expected {
        assert_eq!(places[&role].to_string(), address, "{role:?}");
    }
}

#[test]
fn one_device_more_moves_no_other() {
    let before = Counts { interfaces: 2, disks: 3, sriov: 1, host_devices: 2, filesystems: 1 };
    let more = [
        ("interface", Counts { interfaces: 3, ..before }),
        ("fifth interface", Counts { interfaces: 5, ..before }),
        ("disk", Counts { disks: 4, ..before }),
        ("ten disks", Counts { disks: 10, ..before }),
        ("virtual function", Counts { sriov: 2, ..before }),
        ("host device", Counts { host_devices: 3, ..before }),
        ("directory", Counts { filesystems: 2, ..before }),
        ("no directory", Counts { filesystems: 0, ..before }),
        ("no host device", Counts { host_devices: 0, ..before }),
    ];
    let old = addresses(Architecture::Amd64, before);
    for (what, counts) in more {
        let new = addresses(Architecture::Amd64, counts);
        for (role, address) in old.iter().filter(|(role, _)| new.contains_key(role)) {
            assert_eq!(new[role], *address, "{what} moved {role:?}");
        }
    }
}

#[test]
fn spare_ports_come_last_and_grow_with_memory() {
    let mut plan = PciPlan::new(Architecture::Amd64, Counts { interfaces: 1, ..Counts::default() }, false);
    plan.place(Role::Interface(0)).unwrap();
    assert_eq!(plan.layout(1 << 30).ports, 8);
    assert_eq!(plan.layout(8 << 30).ports, 16);
}

#[test]
fn addresses_are_read() {
    assert_eq!(Address::parse("0000:07:00.0"), Ok(Address::port(7)));
    for wrong in ["", "7", "0000:07:00", "0001:07:00.0", "0000:07:20.0", "0000:07:00.8", "0000:007:00.0"] {
        assert!(Address::parse(wrong).is_err(), "{wrong:?}");
    }
}

/// A plan in which the user has these addresses.
fn plan_with(fixed: impl IntoIterator<Item = String>) -> PciPlan {
    let mut plan = PciPlan::new(Architecture::Amd64, Counts::default(), false);
    for address in fixed {
        plan.reserve(&address).unwrap();
    }
    plan
}

#[test]
fn the_root_complex_makes_way_for_the_user() {
    let mut plan = plan_with(["0000:00:02.0", "0000:00:14.0"].map(str::to_owned));
    let layout = plan.layout(1 << 30);
    assert_eq!((layout.port_slot(1), layout.port_slot(9)), ((3, 0), (4, 0)));
    assert!(matches!(plan.place(Role::Balloon), Ok(Address::Pci { bus: 1.., slot: 0, function: 0 })));
    assert_eq!(plan.place(Role::Rng), Ok(Address::root(0x15)));

    // All slots that there are, as one of KubeVirt's own tests has it.
    let mut plan = plan_with((2..=0x19).map(|slot| format!("0000:00:{slot:02x}.0")));
    let roles = [Role::Interface(0), Role::Scsi, Role::Serial, Role::Balloon, Role::Rng, Role::Usb];
    let places: Vec<_> = roles.iter().map(|role| plan.place(*role).unwrap()).collect();
    assert_eq!(places[..3], [1, 5, 6].map(Address::port));
    let distinct: std::collections::BTreeSet<_> = places.iter().collect();
    assert_eq!(distinct.len(), places.len());
    let layout = plan.layout(1 << 30);
    assert_eq!((layout.ports, layout.port_slot(1), layout.port_slot(8)), (8, (0x1e, 0), (0x1e, 7)));
}

#[test]
fn functions_share_a_slot_behind_the_first() {
    let plan = plan_with((0..8).map(|function| format!("0000:00:02.{function}")));
    let layout = plan.layout(1 << 30);
    assert!(layout.leads_fixed_slot(Address::root(2)));
    assert!(!layout.leads_fixed_slot(Address::root(3)));
    let last = Address::parse("0000:00:02.7").unwrap();
    assert_eq!((layout.leads_fixed_slot(last), plan.check(last)), (false, Ok(())));
    let alone = plan_with(["0000:00:03.1".to_owned()]);
    assert!(alone.check(Address::parse("0000:00:03.1").unwrap()).is_err());
    let far = plan_with((2..0x13).map(|slot| format!("0000:00:{slot:02x}.0")));
    assert!(far.check(Address::port(8)).is_ok() && far.check(Address::port(9)).is_err());
}

#[test]
fn what_the_board_has_no_place_for_is_said() {
    let mut plan = PciPlan::new(Architecture::Amd64, Counts::default(), false);
    for wrong in
        ["0000:04:10.0", "0000:00:00.0", "0000:00:01.0", "0000:00:1d.0", "0000:00:1f.0", "0000:ff:00.0"]
    {
        let error = plan.reserve(wrong).unwrap_err().to_string();
        assert!(error.starts_with(&format!("Invalid PCI address {wrong}")), "{error}");
    }
}

fn counts() -> impl Strategy<Value = Counts> {
    (0..40_u32, 0..60_u32, 0..20_u32, 0..20_u32, 0..20_u32).prop_map(
        |(interfaces, disks, sriov, host_devices, filesystems)| Counts {
            interfaces,
            disks,
            sriov,
            host_devices,
            filesystems,
        },
    )
}

proptest! {
    #[test]
    fn no_address_is_given_twice(counts in counts(), z in any::<bool>()) {
        let architecture = if z { Architecture::S390x } else { Architecture::Amd64 };
        let places = addresses(architecture, counts);
        let distinct: std::collections::BTreeSet<_> = places.values().collect();
        prop_assert_eq!(distinct.len(), places.len());
    }
}
