//! Rules for preferences, of a namespace and of the cluster.

use kubevirt_api::preference::{
    PreferredCpuTopology, SpreadAcross, VirtualMachineClusterPreference, VirtualMachinePreference,
    VirtualMachinePreferenceSpec,
};
use kubevirt_api::quantity::QuantityExt;

use crate::instancetype::topology::{Spread, Topology};
use crate::{Context, Path, Problems};

/// Older names of topologies, and what to write today.
const RENAMED: [(PreferredCpuTopology, PreferredCpuTopology); 5] = [
    (PreferredCpuTopology::PreferSockets, PreferredCpuTopology::Sockets),
    (PreferredCpuTopology::PreferCores, PreferredCpuTopology::Cores),
    (PreferredCpuTopology::PreferThreads, PreferredCpuTopology::Threads),
    (PreferredCpuTopology::PreferSpread, PreferredCpuTopology::Spread),
    (PreferredCpuTopology::PreferAny, PreferredCpuTopology::Any),
];

/// Everything that is wrong with a preference; any change of it is allowed.
pub fn check(
    _cx: &Context<'_>,
    new: &VirtualMachinePreference,
    _old: Option<&VirtualMachinePreference>,
) -> Problems {
    check_spec(&Path::new("spec"), &new.spec)
}

/// Everything that is wrong with a preference of the cluster; any change of it is allowed.
pub fn check_cluster(
    _cx: &Context<'_>,
    new: &VirtualMachineClusterPreference,
    _old: Option<&VirtualMachineClusterPreference>,
) -> Problems {
    check_spec(&Path::new("spec"), &new.spec)
}

/// Everything that is wrong with the specification of a preference that stands at this path.
pub fn check_spec(path: &Path<'_>, spec: &VirtualMachinePreferenceSpec) -> Problems {
    let mut problems = Problems::default();
    topology(path, spec, &mut problems);
    spread(path, spec, &mut problems);
    counts(path, spec, &mut problems);
    let memory = spec.requirements.as_ref().and_then(|required| required.memory.as_ref());
    if let Some(Err(error)) = memory.map(|memory| memory.guest.amount()) {
        let message = format!("{error}: write it as 512Mi or 4Gi");
        problems.invalid(&path.at("requirements.memory.guest"), message);
    }
    problems
}

fn topology(path: &Path<'_>, spec: &VirtualMachinePreferenceSpec, problems: &mut Problems) {
    let topology = spec.cpu.as_ref().and_then(|cpu| cpu.preferred_cpu_topology.as_ref());
    let Some(topology) = topology else { return };
    let field = path.at("cpu.preferredCPUTopology");
    if !topology.is_known() {
        let message =
            format!("{:?} is not a topology: use sockets, cores, threads, spread or any", topology.as_str());
        problems.invalid(&field, message);
    }
    if let Some((_, today)) = RENAMED.iter().find(|(older, _)| older == topology) {
        problems.warn(format!("{field}: {topology} is deprecated: write {today} instead"));
    }
}

fn spread(path: &Path<'_>, spec: &VirtualMachinePreferenceSpec, problems: &mut Problems) {
    let Topology::Spread(Spread { ratio, across }) = Topology::preferred(Some(spec)) else { return };
    let options = path.at("cpu.spreadOptions");
    if !across.is_known() {
        let known = SpreadAcross::KNOWN.join(", ");
        let message = format!("CPUs cannot be spread across {:?}: use one of {known}", across.as_str());
        problems.invalid(&options.at("across"), message);
    }
    if across == SpreadAcross::CoresThreads && ratio != 2 && ratio >= 0 {
        let message = format!("a core has 2 threads where CPUs are spread across both, not {ratio}");
        problems.invalid(&options.at("ratio"), message);
    }
}

/// Numbers that count something.
fn counts(path: &Path<'_>, spec: &VirtualMachinePreferenceSpec, problems: &mut Problems) {
    let options = spec.cpu.as_ref().and_then(|cpu| cpu.spread_options.as_ref());
    let required = spec.requirements.as_ref().and_then(|required| required.cpu.as_ref());
    let hyperv = spec.features.as_ref().and_then(|features| features.preferred_hyperv.as_ref());
    let spinlocks = hyperv.and_then(|hyperv| hyperv.spinlocks.as_ref());
    let block_size = spec.devices.as_ref().and_then(|devices| devices.preferred_disk_block_size.as_ref());
    let sizes = block_size.and_then(|size| size.custom.as_ref());
    for (field, count) in [
        ("preferSpreadSocketToCoreRatio", spec.prefer_spread_socket_to_core_ratio.map(i64::from)),
        ("cpu.spreadOptions.ratio", options.and_then(|options| options.ratio).map(i64::from)),
        ("requirements.cpu.guest", required.map(|cpu| i64::from(cpu.guest))),
        (
            "features.preferredHyperv.spinlocks.spinlocks",
            spinlocks.and_then(|spinlocks| spinlocks.spinlocks).map(i64::from),
        ),
        ("devices.preferredDiskBlockSize.custom.logical", sizes.and_then(|sizes| sizes.logical)),
        ("devices.preferredDiskBlockSize.custom.physical", sizes.and_then(|sizes| sizes.physical)),
        (
            "devices.preferredDiskBlockSize.custom.discardGranularity",
            sizes.and_then(|sizes| sizes.discard_granularity),
        ),
    ] {
        if let Some(count) = count.filter(|count| *count < 0) {
            problems.invalid(&path.at(field), format!("{count} is negative, but this counts something"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, read};

    fn cpu(topology: &str, options: Value) -> Value {
        json!({ "cpu": { "preferredCPUTopology": topology, "spreadOptions": options } })
    }

    #[test]
    fn a_preference_makes_sense() {
        let across = "spec.cpu.spreadOptions.across";
        let ratio = "spec.cpu.spreadOptions.ratio";
        let mut cases = vec![
            ("empty", json!({}), vec![]),
            ("no topology", json!({ "cpu": {} }), vec![]),
            ("unknown topology", cpu("rings", Value::Null), vec!["spec.cpu.preferredCPUTopology"]),
            ("empty topology", cpu("", Value::Null), vec!["spec.cpu.preferredCPUTopology"]),
            ("spread", cpu("spread", Value::Null), vec![]),
            ("spread over sockets", cpu("spread", json!({ "across": "SocketsCores", "ratio": 4 })), vec![]),
            (
                "spread over all",
                cpu("spread", json!({ "across": "SocketsCoresThreads", "ratio": 4 })),
                vec![],
            ),
            ("spread over threads", cpu("spread", json!({ "across": "CoresThreads" })), vec![]),
            ("two threads", cpu("spread", json!({ "across": "CoresThreads", "ratio": 2 })), vec![]),
            ("three threads", cpu("spread", json!({ "across": "CoresThreads", "ratio": 3 })), vec![ratio]),
            (
                "three threads of old",
                cpu("preferSpread", json!({ "across": "CoresThreads", "ratio": 3 })),
                vec![ratio],
            ),
            ("no threads", cpu("spread", json!({ "across": "CoresThreads", "ratio": 0 })), vec![ratio]),
            (
                "negative threads",
                cpu("spread", json!({ "across": "CoresThreads", "ratio": -1 })),
                vec![ratio],
            ),
            ("ratio of nothing", cpu("spread", json!({ "ratio": 0 })), vec![]),
            ("unknown spread", cpu("spread", json!({ "across": "Rings" })), vec![across]),
            ("unknown spread of old", cpu("preferSpread", json!({ "across": "" })), vec![across]),
            ("unknown spread of no concern", cpu("cores", json!({ "across": "Rings", "ratio": 3 })), vec![]),
            (
                "older ratio for threads",
                json!({
                    "preferSpreadSocketToCoreRatio": 3,
                    "cpu": { "preferredCPUTopology": "spread", "spreadOptions": { "across": "CoresThreads" } },
                }),
                vec![ratio],
            ),
            ("negative ratio", cpu("sockets", json!({ "ratio": -2 })), vec![ratio]),
            (
                "negative older ratio",
                json!({ "preferSpreadSocketToCoreRatio": -2 }),
                vec!["spec.preferSpreadSocketToCoreRatio"],
            ),
            (
                "negative CPUs",
                json!({ "requirements": { "cpu": { "guest": -1 } } }),
                vec!["spec.requirements.cpu.guest"],
            ),
            ("required memory", json!({ "requirements": { "memory": { "guest": "1Gi" } } }), vec![]),
            (
                "unreadable memory",
                json!({ "requirements": { "memory": { "guest": "lots" } } }),
                vec!["spec.requirements.memory.guest"],
            ),
            (
                "negative spinlocks",
                json!({ "features": { "preferredHyperv": { "spinlocks": { "spinlocks": -1 } } } }),
                vec!["spec.features.preferredHyperv.spinlocks.spinlocks"],
            ),
            (
                "negative block sizes",
                json!({ "devices": { "preferredDiskBlockSize": { "custom": {
                    "logical": -1, "physical": -1, "discardGranularity": -1,
                } } } }),
                vec![
                    "spec.devices.preferredDiskBlockSize.custom.logical",
                    "spec.devices.preferredDiskBlockSize.custom.physical",
                    "spec.devices.preferredDiskBlockSize.custom.discardGranularity",
                ],
            ),
        ];
        cases.extend(PreferredCpuTopology::KNOWN.iter().map(|word| (*word, cpu(word, Value::Null), vec![])));
        for (name, spec, expected) in cases {
            let object = json!({ "metadata": { "name": "p" }, "spec": spec });
            let namespaced = World::default().run(|cx| check(cx, &read(object.clone()), None));
            assert_fields(name, &namespaced, &expected);
            let cluster = World::default().updating().run(|cx| {
                check_cluster(cx, &read(object), Some(&VirtualMachineClusterPreference::default()))
            });
            assert_eq!(cluster, namespaced, "{name}");
        }
    }

    #[test]
    fn older_names_are_deprecated() {
        for word in PreferredCpuTopology::KNOWN {
            let warnings = check_spec(&Path::new("spec"), &read(cpu(word, Value::Null)));
            assert_eq!(warnings.warnings().len(), usize::from(word.starts_with("prefer")), "{word}");
        }
    }
}
