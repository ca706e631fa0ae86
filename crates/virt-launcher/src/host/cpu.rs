//! The host's CPU, as QEMU sees it: what a machine gets that asks for the host's model, or for nothing.

use std::collections::BTreeSet;

use kubevirt_domain::facts::HostCpu;
use kubevirt_domain::host_model::{Cpu, is_real, nearest};
use kubevirt_qemu::Machine;
use kubevirt_qemu::machine::{CpuDefinition, CpuModel, Expansion};
use kubevirt_qemu::qmp::QmpError;
use serde_json::Value;

/// Asks a QEMU that uses KVM for `host`, and one that emulates for `max`.
///
/// It is asked for some seventy models, one after the other, each in well under a millisecond.
pub(super) async fn ask(machine: &Machine, own: &str) -> Result<HostCpu, QmpError> {
    let own = machine.expand_cpu(&CpuModel::named(own), Expansion::Static).await?;
    let host = cpu(&own.name, &own);
    let mut named = Vec::new();
    for name in candidates(&machine.cpu_definitions().await?) {
        // A model that this QEMU cannot even describe is no model for the host.
        if let Ok(expanded) = machine.expand_cpu(&CpuModel::named(&name), Expansion::Static).await {
            named.push(cpu(&name, &expanded));
        }
    }
    let unnamed = || HostCpu { features: host.features.clone(), ..HostCpu::default() };
    Ok(nearest(&host, &named).unwrap_or_else(unnamed))
}

/// Models that mean the same everywhere, each by one of its names: the one without a version, if it has one.
fn candidates(definitions: &[CpuDefinition]) -> Vec<String> {
    let aliased: BTreeSet<&str> = definitions.iter().filter_map(|one| one.alias_of.as_deref()).collect();
    let useful = |one: &&CpuDefinition| {
        is_real(&one.name) && one.migration_safe != Some(false) && !aliased.contains(one.name.as_str())
    };
    definitions.iter().filter(useful).map(|one| one.name.clone()).collect()
}

fn cpu(name: &str, expanded: &CpuModel) -> Cpu {
    let number = |name: &str| expanded.props.get(name).and_then(Value::as_i64);
    // What KVM adds of its own is no feature of a CPU.
    let ours = |name: &&str| !["kvm", "hv-", "x-"].iter().any(|start| name.starts_with(start));
    Cpu {
        name: name.to_owned(),
        vendor: expanded.props.get("vendor").and_then(Value::as_str).map(str::to_owned),
        signature: number("family").zip(number("model")),
        features: expanded.features().filter(ours).map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_qemu::process::Launch;

    use super::*;

    async fn qemu(arguments: &[&str]) -> (kubevirt_qemu::Process, Machine) {
        let common = ["-nodefaults", "-display", "none", "-S"];
        let launch = Launch {
            program: "qemu-system-x86_64".into(),
            arguments: arguments.iter().chain(&common).map(Into::into).collect(),
            ..Launch::default()
        };
        launch.start().await.unwrap()
    }

    #[tokio::test]
    async fn a_machine_can_have_all_of_the_named_cpu() {
        let (process, machine) = qemu(&["-machine", "none,accel=tcg"]).await;
        let found = ask(&machine, "max").await.unwrap();
        process.end().await;
        let model = found.model.unwrap();
        assert!(is_real(&model) && found.features.contains("aes"), "{model} {:?}", found.features);
        let flags = found.require.iter().map(|name| format!(",{name}=on"));
        let flags: String = flags.chain(found.disable.iter().map(|name| format!(",{name}=off"))).collect();
        // Told to be strict, QEMU does not start with a flag that it cannot give.
        let cpu = format!("{model}{flags},enforce=on");
        let (process, machine) = qemu(&["-machine", "q35,accel=tcg", "-cpu", &cpu]).await;
        assert!(machine.status().await.is_ok());
        process.end().await;
    }

    #[test]
    fn each_model_is_asked_for_once() {
        let definition = |name: &str, alias_of: Option<&str>, migration_safe| CpuDefinition {
            name: name.into(),
            unavailable_features: None,
            migration_safe: Some(migration_safe),
            alias_of: alias_of.map(Into::into),
            deprecated: false,
        };
        let all = [
            definition("max", None, false),
            definition("EPYC-v1", None, true),
            definition("EPYC-v2", None, true),
            definition("EPYC", Some("EPYC-v1"), true),
            definition("odd", None, false),
        ];
        assert_eq!(candidates(&all), ["EPYC-v2", "EPYC"]);
    }
}
