//! The order in which devices are tried at boot: no two devices in the same place.

use std::collections::HashSet;

use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use super::disks_of;
use crate::{Path, Problems};

/// What is wrong with the boot orders of disks and interfaces, taken together.
pub(super) fn check(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let mut taken = HashSet::new();
    let disks = path.at("domain.devices.disks");
    for (index, order) in disks_of(spec).iter().map(|disk| disk.boot_order).enumerate() {
        // Orders below 1 are a problem of the disk itself.
        if let Some(order) = order.filter(|order| *order >= 1) {
            take(&mut taken, order, &disks.index(index), problems);
        }
    }
    let interfaces = path.at("domain.devices.interfaces");
    let all = spec.domain.devices.interfaces.as_deref().unwrap_or_default();
    for (index, order) in all.iter().map(|interface| interface.boot_order).enumerate() {
        match order {
            // Clients know the problem under this short path.
            Some(order) if order < 1 => {
                problems.invalid(&path.index(index).at("bootOrder"), "boot orders start at 1");
            }
            Some(order) => take(&mut taken, order, &interfaces.index(index), problems),
            None => {}
        }
    }
}

fn take(taken: &mut HashSet<i64>, order: i64, device: &Path<'_>, problems: &mut Problems) {
    if !taken.insert(order) {
        let message = format!("another device has the boot order {order} already: give each its own");
        problems.invalid(&device.at("bootOrder"), message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{assert_fields, read};

    #[test]
    fn boot_orders_are_unique_over_disks_and_interfaces() {
        let list = |orders: &[i64]| -> Value {
            orders.iter().map(|order| json!({"name": "x", "bootOrder": order})).collect()
        };
        type Case = (&'static str, &'static [i64], &'static [i64], &'static [&'static str]);
        let cases: [Case; 8] = [
            ("none", &[], &[], &[]),
            ("each its own", &[1, 3], &[2, 4], &[]),
            ("two disks", &[1, 1], &[], &["spec.domain.devices.disks[1].bootOrder"]),
            ("a disk and an interface", &[1], &[1], &["spec.domain.devices.interfaces[0].bootOrder"]),
            ("two interfaces", &[], &[2, 2], &["spec.domain.devices.interfaces[1].bootOrder"]),
            ("an interface at 0", &[], &[0], &["spec[0].bootOrder"]),
            ("a negative interface", &[], &[1, -1], &["spec[1].bootOrder"]),
            ("disks at 0 are found elsewhere", &[0, 0], &[], &[]),
        ];
        for (case, disks, interfaces, expected) in cases {
            let spec =
                read(json!({"domain": {"devices": {"disks": list(disks), "interfaces": list(interfaces)}}}));
            let mut problems = Problems::default();
            check(&Path::new("spec"), &spec, &mut problems);
            assert_fields(case, &problems, expected);
        }
    }
}
