//! What a preference requires of the VMs that use it: CPUs, memory and architecture.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::instancetype::VirtualMachineInstancetypeSpec;
use kubevirt_api::preference::{SpreadAcross, VirtualMachinePreferenceSpec};
use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::cpu::Cpu;

use super::topology::{Spread, Topology};
use crate::{Path, Problems};

const INSTANCETYPE: Path<'_> = Path::new("spec.instancetype");

/// A count of a CPU topology, and its field.
type Level = (&'static str, fn(&Cpu) -> Option<i32>);

const SOCKETS: Level = ("spec.template.spec.domain.cpu.sockets", |cpu| cpu.sockets);
const CORES: Level = ("spec.template.spec.domain.cpu.cores", |cpu| cpu.cores);
const THREADS: Level = ("spec.template.spec.domain.cpu.threads", |cpu| cpu.threads);

/// Where a VM falls short of its preference. `spec` is what the VM's template becomes with the instance type, the
/// preference and the defaults.
pub fn check(
    instancetype: Option<&VirtualMachineInstancetypeSpec>,
    preference: Option<&VirtualMachinePreferenceSpec>,
    spec: &VirtualMachineInstanceSpec,
) -> Problems {
    let mut problems = Problems::default();
    let Some(preference) = preference else { return problems };
    let Some(required) = &preference.requirements else { return problems };
    if let Some(cpu) = &required.cpu {
        match instancetype {
            Some(instancetype) => instancetype_cpus(instancetype.cpu.guest, cpu.guest, &mut problems),
            None => own_cpus(preference, spec.domain.cpu.as_ref(), cpu.guest, &mut problems),
        }
    }
    if let Some(required) = &required.memory {
        memory(instancetype, spec, &required.guest, &mut problems);
    }
    if let Some(required) = &required.architecture {
        let own = spec.architecture.as_deref().unwrap_or_default();
        if own != required {
            let message = format!("preference requires architecture {required} but {own} is being requested");
            fall_short(&Path::new("spec.template.spec.architecture"), &message, &mut problems);
        }
    }
    problems
}

fn fall_short(field: &Path<'_>, how: &str, problems: &mut Problems) {
    problems.not_found(field, format!("failure checking preference requirements: {how}"));
}

fn instancetype_cpus(given: i32, required: i32, problems: &mut Problems) {
    if given < required {
        let message = format!(
            "insufficient CPU resources of {given} vCPU provided by instance type, preference requires {required} \
             vCPU"
        );
        fall_short(&INSTANCETYPE, &message, problems);
    }
}

fn own_cpus(
    preference: &VirtualMachinePreferenceSpec,
    cpu: Option<&Cpu>,
    required: i32,
    problems: &mut Problems,
) {
    let Some(cpu) = cpu else {
        let message =
            format!("no CPU resources provided by VirtualMachine, preference requires {required} vCPU");
        fall_short(&Path::new("spec.template.spec.domain.cpu"), &message, problems);
        return;
    };
    let levels = levels(&Topology::preferred(Some(preference)));
    let given = levels
        .iter()
        .fold(1_i64, |product, (_, count)| product.saturating_mul(i64::from(count(cpu).unwrap_or_default())));
    if given < i64::from(required) {
        // One shortfall, of all the counts together.
        let fields: Vec<&str> = levels.iter().map(|(field, _)| *field).collect();
        let counts: Vec<&str> = fields.iter().filter_map(|field| field.rsplit('.').next()).collect();
        let message = format!(
            "insufficient CPU resources of {given} vCPU provided by VirtualMachine, preference requires {required} \
             vCPU provided as {}",
            counts.join(", ")
        );
        fall_short(&Path::new(&fields.join(", ")), &message, problems);
    }
}

/// The counts that a preference looks at.
fn levels(topology: &Topology) -> &'static [Level] {
    match topology {
        Topology::Sockets => &[SOCKETS],
        Topology::Cores => &[CORES],
        Topology::Threads => &[THREADS],
        Topology::Any => &[CORES, SOCKETS, THREADS],
        Topology::Spread(Spread { across, .. }) => match across {
            SpreadAcross::CoresThreads => &[CORES, THREADS],
            SpreadAcross::SocketsCoresThreads => &[SOCKETS, CORES, THREADS],
            SpreadAcross::SocketsCores | SpreadAcross::Other(_) => &[SOCKETS, CORES],
        },
    }
}

fn memory(
    instancetype: Option<&VirtualMachineInstancetypeSpec>,
    spec: &VirtualMachineInstanceSpec,
    required: &Quantity,
    problems: &mut Problems,
) {
    let own = spec.domain.memory.as_ref().and_then(|memory| memory.guest.as_ref());
    let given = own.or(instancetype.map(|instancetype| &instancetype.memory.guest));
    // Text that is no quantity is a problem of its own elsewhere.
    let (Ok(amount), Ok(least)) =
        (given.map_or(Ok(Default::default()), QuantityExt::amount), required.amount())
    else {
        return;
    };
    if amount < least {
        let given = given.map_or("0", |given| given.0.as_str());
        let (field, giver) = match instancetype {
            Some(_) => (INSTANCETYPE, "instance type"),
            None => (Path::new("spec.template.spec.domain.memory"), "VirtualMachine"),
        };
        let message = format!(
            "insufficient Memory resources of {given} provided by {giver}, preference requires {}",
            required.0
        );
        fall_short(&field, &message, problems);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{assert_fields, patched, read};

    fn assert_required(
        name: &str,
        instancetype: &Value,
        preference: &Value,
        spec: &Value,
        expected: &[&str],
    ) {
        let spec = read(patched(&json!({ "domain": { "devices": {} } }), spec));
        let instancetype: Option<VirtualMachineInstancetypeSpec> = read(instancetype.clone());
        let problems = check(instancetype.as_ref(), Some(&read(preference.clone())), &spec);
        assert_fields(name, &problems, expected);
        assert!(problems.iter().all(|problem| problem.reason == crate::Reason::NotFound), "{name}");
    }

    #[test]
    fn an_instance_type_has_to_be_large_enough() {
        let size = json!({ "cpu": { "guest": 2 }, "memory": { "guest": "2Gi" } });
        let cpus = |cpus: u32| json!({ "requirements": { "cpu": { "guest": cpus } } });
        let memory = |memory: &str| json!({ "requirements": { "memory": { "guest": memory } } });
        let cases = [
            ("no requirements", json!({}), vec![]),
            ("empty requirements", json!({ "requirements": {} }), vec![]),
            ("enough CPUs", cpus(2), vec![]),
            ("too few CPUs", cpus(3), vec!["spec.instancetype"]),
            ("enough memory", memory("2048Mi"), vec![]),
            ("too little memory", memory("2049Mi"), vec!["spec.instancetype"]),
            ("unreadable", memory("much"), vec![]),
            (
                "both",
                json!({ "requirements": { "cpu": { "guest": 4 }, "memory": { "guest": "4Gi" } } }),
                vec!["spec.instancetype", "spec.instancetype"],
            ),
        ];
        for (name, preference, expected) in cases {
            assert_required(name, &size, &preference, &json!({}), &expected);
        }
    }

    #[test]
    fn without_an_instance_type_the_vm_has_to_be_large_enough() {
        let needs = |cpu: Value| json!({ "requirements": { "cpu": { "guest": 4 } }, "cpu": cpu });
        let topology = |word: &str| needs(json!({ "preferredCPUTopology": word }));
        let spread = |across: &str| {
            needs(json!({ "preferredCPUTopology": "spread", "spreadOptions": { "across": across } }))
        };
        let cpu = |sockets: u32, cores: u32, threads: u32| json!({ "domain": { "cpu": { "sockets": sockets, "cores": cores, "threads": threads } } });
        const BASE: &str = "spec.template.spec.domain.cpu";
        let cases = [
            ("no CPUs at all", needs(json!({})), json!({}), vec![""]),
            ("enough sockets", needs(json!({})), cpu(4, 1, 1), vec![]),
            ("too few sockets", needs(json!({})), cpu(2, 2, 1), vec![".sockets"]),
            ("older sockets", topology("preferSockets"), cpu(3, 9, 9), vec![".sockets"]),
            ("enough cores", topology("cores"), cpu(1, 4, 1), vec![]),
            ("too few cores", topology("cores"), cpu(4, 1, 1), vec![".cores"]),
            ("older cores", topology("preferCores"), cpu(4, 1, 1), vec![".cores"]),
            ("enough threads", topology("threads"), cpu(1, 1, 4), vec![]),
            ("too few threads", topology("threads"), cpu(4, 4, 2), vec![".threads"]),
            ("older threads", topology("preferThreads"), cpu(4, 4, 2), vec![".threads"]),
            ("enough of any", topology("any"), cpu(2, 1, 2), vec![]),
            ("too few of any", topology("any"), cpu(3, 1, 1), vec![".cores", ".sockets", ".threads"]),
            ("older any", topology("preferAny"), cpu(3, 1, 1), vec![".cores", ".sockets", ".threads"]),
            ("enough spread", topology("spread"), cpu(2, 2, 1), vec![]),
            ("too few spread", topology("spread"), cpu(2, 1, 2), vec![".sockets", ".cores"]),
            ("older spread", topology("preferSpread"), cpu(2, 1, 2), vec![".sockets", ".cores"]),
            ("enough cores and threads", spread("CoresThreads"), cpu(1, 2, 2), vec![]),
            ("too few cores and threads", spread("CoresThreads"), cpu(4, 2, 1), vec![".cores", ".threads"]),
            ("enough of all", spread("SocketsCoresThreads"), cpu(2, 1, 2), vec![]),
            (
                "too few of all",
                spread("SocketsCoresThreads"),
                cpu(1, 1, 2),
                vec![".sockets", ".cores", ".threads"],
            ),
            (
                "missing counts",
                topology("any"),
                json!({ "domain": { "cpu": {} } }),
                vec![".cores", ".sockets", ".threads"],
            ),
        ];
        for (name, preference, spec, ends) in cases {
            let fields: Vec<String> = ends.iter().map(|end| format!("{BASE}{end}")).collect();
            let field = fields.join(", ");
            let expected = if ends.is_empty() { vec![] } else { vec![field.as_str()] };
            assert_required(name, &Value::Null, &preference, &spec, &expected);
        }
    }

    #[test]
    fn memory_of_the_vm_counts_without_an_instance_type() {
        let preference = json!({ "requirements": { "memory": { "guest": "1Gi" } } });
        let memory = |guest: &str| json!({ "domain": { "memory": { "guest": guest } } });
        let field = "spec.template.spec.domain.memory";
        let cases = [
            ("enough", memory("1Gi"), vec![]),
            ("too little", memory("1G"), vec![field]),
            ("none", json!({}), vec![field]),
            ("unreadable", memory("x"), vec![]),
        ];
        for (name, spec, expected) in cases {
            assert_required(name, &Value::Null, &preference, &spec, &expected);
        }
    }

    #[test]
    fn the_architecture_has_to_be_the_required_one() {
        let preference = json!({ "requirements": { "architecture": "arm64" } });
        let field = "spec.template.spec.architecture";
        for (architecture, expected) in
            [(json!("arm64"), vec![]), (json!("amd64"), vec![field]), (Value::Null, vec![field])]
        {
            let spec = json!({ "architecture": architecture });
            assert_required("architecture", &Value::Null, &preference, &spec, &expected);
        }
    }

    #[test]
    fn nothing_is_required_without_a_preference() {
        assert!(check(None, None, &VirtualMachineInstanceSpec::default()).is_empty());
    }
}
