//! Whatever a VMI says, the answer is a domain or a list of refusals, and a domain is sound.

use std::collections::BTreeSet;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::{Layout, changes as changes_between, convert, qemu};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::{Case, cases};

/// Words and numbers that fields may be set to, good and bad.
fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..70_000_i64).prop_map(Value::from),
        prop_oneof![Just(i64::MAX), Just(i64::MIN), Just(i64::from(i32::MAX))].prop_map(Value::from),
        "[a-z0-9,:.=/^-]{0,12}".prop_map(Value::from),
        prop_oneof![
            Just("virtio"),
            Just("sata"),
            Just("scsi"),
            Just("usb"),
            Just("none"),
            Just("native"),
            Just("auto"),
            Just("1Gi"),
            Just("2Mi"),
            Just("0000:07:00.0"),
            Just("arm64"),
            Just("s390x"),
            Just("host-model"),
        ]
        .prop_map(Value::from),
    ]
}

/// Changes one leaf of a tree.
fn mutate(tree: &mut Value, path: &mut impl Iterator<Item = usize>, to: Value) {
    let Some(step) = path.next() else { return *tree = to };
    match tree {
        Value::Object(map) if !map.is_empty() => {
            let key = map.keys().nth(step % map.len()).unwrap().clone();
            mutate(map.get_mut(&key).unwrap(), path, to);
        }
        Value::Array(list) if !list.is_empty() => {
            let index = step % list.len();
            if step % 7 == 3 {
                let copy = list[index].clone();
                list.push(copy);
            }
            mutate(&mut list[index], path, to);
        }
        leaf => *leaf = to,
    }
}

/// A case whose VMI and facts are changed in a few places; nothing if they cannot be decoded any more.
fn changed(case: &Case, changes: &[(Vec<usize>, Value)]) -> Option<Case> {
    let mut tree = Map::new();
    tree.insert("vmi".into(), serde_json::to_value(&case.vmi).ok()?);
    tree.insert("host".into(), serde_json::to_value(&case.host).ok()?);
    let mut tree = Value::Object(tree);
    for (path, to) in changes {
        mutate(&mut tree, &mut path.iter().copied(), to.clone());
    }
    let vmi: VirtualMachineInstance = serde_json::from_value(tree.get("vmi")?.clone()).ok()?;
    let host = serde_json::from_value(tree.get("host")?.clone()).ok()?;
    Some(Case { name: case.name.clone(), vmi, host, qemu: case.qemu.clone() })
}

/// Device names and places of a machine, each of which must be its own.
fn names_and_places(arguments: &[String]) -> (Vec<String>, Vec<String>) {
    let objects = arguments.iter().filter_map(|argument| serde_json::from_str::<Value>(argument).ok());
    let (mut names, mut places) = (Vec::new(), Vec::new());
    for object in objects.filter(|object| object.get("driver").is_some() && object.get("id").is_some()) {
        names.push(object["id"].to_string());
        if object.get("addr").is_some() || object.get("devno").is_some() {
            places.push(json!([object.get("bus"), object.get("addr"), object.get("devno")]).to_string());
        }
    }
    (names, places)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn conversion_never_panics_and_addresses_are_unique(
        index in any::<prop::sample::Index>(),
        changes in prop::collection::vec((prop::collection::vec(0..40_usize, 1..7), scalar()), 0..6),
    ) {
        thread_local!(static CASES: Vec<Case> = cases());
        let case = CASES.with(|cases| changed(&cases[index.index(cases.len())], &changes));
        let Some(case) = case else { return Ok(()) };
        match convert(&case.vmi, &case.host, &case.qemu, &Layout::default()) {
            Err(error) => prop_assert!(!error.problems.is_empty()),
            Ok(domain) => {
                let (_, places) = names_and_places(&qemu::arguments(&domain));
                let distinct: BTreeSet<_> = places.iter().collect();
                prop_assert_eq!(distinct.len(), places.len(), "{:?}", places);
                let index = index.index(CASES.with(Vec::len));
                let before = CASES.with(|cases| {
                    let before = &cases[index];
                    convert(&before.vmi, &before.host, &before.qemu, &Layout::default())
                });
                let Ok(mut running) = before else { return Ok(()) };
                for change in changes_between(&running, &domain).list {
                    change.steps(&running);
                    change.undo(&running);
                    change.apply(&mut running);
                }
                let (_, places) = names_and_places(&qemu::arguments(&running));
                let distinct: BTreeSet<_> = places.iter().collect();
                prop_assert_eq!(distinct.len(), places.len(), "{:?}", places);
                prop_assert_eq!(changes_between(&running, &domain).list, vec![]);
            }
        }
    }
}

#[test]
fn names_are_unique_in_every_stored_case() {
    for case in cases() {
        let Ok(domain) = convert(&case.vmi, &case.host, &case.qemu, &Layout::default()) else { continue };
        let (names, _) = names_and_places(&qemu::arguments(&domain));
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{}: {names:?}", case.name);
    }
}
