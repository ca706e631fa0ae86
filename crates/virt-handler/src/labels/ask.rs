//! Asks a QEMU what it can do, and makes facts of the answers.

use std::collections::BTreeSet;

use kubevirt_domain::facts::HostCpu;
use kubevirt_domain::host_model::{Cpu, is_real, nearest};
use kubevirt_qemu::Machine;
use kubevirt_qemu::machine::{CpuDefinition, CpuModel, Expansion, MachineType as Type};
use kubevirt_qemu::qmp::QmpError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::facts::{Encryption, Facts, MachineType, Model};

/// What QEMU tells of CPUs, machine types and encryption. Asks for nothing that only some architectures know.
pub async fn facts(machine: &Machine, kvm: bool, architecture: &str) -> Result<Facts, QmpError> {
    let mut facts = Facts { architecture: architecture.to_owned(), kvm, ..Facts::default() };
    facts.machine_types = machine_types(machine.machine_types().await?);
    // Guests of this architecture have the host's CPU as it is, or one that QEMU makes up.
    if architecture != "arm64" {
        cpus(machine, &mut facts).await?;
    }
    let kinds: Vec<Kind> =
        machine.qmp().call("qom-list-types", json!({ "implements": "confidential-guest-support" })).await?;
    let has = |name: &str| kinds.iter().any(|kind| kind.name == name);
    facts.encryption = Encryption {
        sev: has("sev-guest") && machine.sev().await.is_ok(),
        sev_es: has("sev-guest"),
        sev_snp: has("sev-snp-guest"),
        tdx: has("tdx-guest"),
        secure_execution: has("s390-pv-guest"),
    };
    Ok(facts)
}

#[derive(Deserialize)]
struct Kind {
    name: String,
}

async fn cpus(machine: &Machine, facts: &mut Facts) -> Result<(), QmpError> {
    let own = CpuModel::named(if facts.kvm { "host" } else { "max" });
    let plain = machine.expand_cpu(&own, Expansion::Static).await?;
    let definitions = machine.cpu_definitions().await?;
    facts.models = models(&definitions);
    if is_real(&plain.name) {
        // QEMU itself knows which model the host is of, as on s390x.
        facts.vendor = Some("IBM".to_owned());
        let features = features(&plain);
        facts.cpu = HostCpu {
            model: Some(plain.name.clone()),
            require: features.iter().cloned().collect(),
            disable: Vec::new(),
            features,
        };
        return Ok(());
    }
    let host = cpu(&plain);
    let mut named = Vec::new();
    for definition in definitions.iter().filter(|one| is_real(&one.name) && one.migration_safe != Some(false))
    {
        // A model that this QEMU cannot even describe is no model for the host.
        if let Ok(expanded) = machine.expand_cpu(&CpuModel::named(&definition.name), Expansion::Static).await
        {
            named.push(Cpu { name: definition.name.clone(), ..cpu(&expanded) });
        }
    }
    facts.vendor = host.vendor.as_deref().map(vendor);
    facts.cpu = nearest(&host, &named)
        .unwrap_or_else(|| HostCpu { features: host.features.clone(), ..HostCpu::default() });
    let full = machine.expand_cpu(&own, Expansion::Full).await?;
    facts.feature_aliases = aliases(&host.features, &full);
    Ok(())
}

fn cpu(expanded: &CpuModel) -> Cpu {
    let number = |name: &str| expanded.props.get(name).and_then(Value::as_i64);
    Cpu {
        name: expanded.name.clone(),
        vendor: expanded.props.get("vendor").and_then(Value::as_str).map(str::to_owned),
        signature: number("family").zip(number("model")),
        features: features(expanded),
    }
}

/// The features of a CPU, without what KVM adds of its own.
fn features(expanded: &CpuModel) -> BTreeSet<String> {
    let ours = |name: &&str| !["kvm", "hv-", "x-"].iter().any(|start| name.starts_with(start));
    expanded.features().filter(ours).map(str::to_owned).collect()
}

/// Other spellings of the features: with underscores, and older names that are still in use.
fn aliases(features: &BTreeSet<String>, full: &CpuModel) -> Vec<String> {
    const OLDER: [(&str, &str); 4] =
        [("pclmuldq", "pclmulqdq"), ("sse3", "pni"), ("xd", "nx"), ("i64", "lm")];
    let plain = |name: &str| name.replace(['_', '.'], "-");
    let known: BTreeSet<String> = features.iter().map(|name| plain(name)).collect();
    let is_alias = |name: &&str| {
        let older = OLDER.iter().any(|(old, new)| name == old && features.contains(*new));
        !features.contains(*name) && (older || known.contains(&plain(name)))
    };
    full.features().filter(is_alias).map(str::to_owned).collect()
}

/// The models that a machine can be told to have.
fn models(definitions: &[CpuDefinition]) -> Vec<Model> {
    let named = definitions.iter().filter(|one| !["max", "host", "base"].contains(&one.name.as_str()));
    let mut models: Vec<Model> =
        named.map(|one| Model { name: one.name.clone(), usable: one.is_usable() }).collect();
    models.sort_by(|one, other| one.name.cmp(&other.name));
    models
}

/// The machine types and their other names.
fn machine_types(types: Vec<Type>) -> Vec<MachineType> {
    let machines = types.into_iter().filter(|one| one.name != "none");
    let named = machines.flat_map(|one| {
        let deprecated = one.deprecated;
        [Some(one.name), one.alias].into_iter().flatten().map(move |name| MachineType { name, deprecated })
    });
    let mut types: Vec<MachineType> = named.collect();
    types.sort_by(|one, other| one.name.cmp(&other.name));
    types
}

/// The name of a maker whom the CPU calls this.
fn vendor(told: &str) -> String {
    match told {
        "GenuineIntel" => "Intel",
        "AuthenticAMD" => "AMD",
        "HygonGenuine" => "Hygon",
        other => other.trim(),
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn model(props: &[(&str, bool)]) -> CpuModel {
        let props: BTreeMap<_, _> =
            props.iter().map(|(name, value)| ((*name).to_owned(), Value::Bool(*value))).collect();
        CpuModel { name: "base".into(), props }
    }

    #[test]
    fn spells_features_in_every_way_that_users_do() {
        let plain = model(&[("lahf-lm", true), ("pclmulqdq", true), ("aes", false), ("kvmclock", true)]);
        let found = features(&plain);
        assert_eq!(found, ["lahf-lm", "pclmulqdq"].map(str::to_owned).into());
        let full = model(&[
            ("lahf-lm", true),
            ("lahf_lm", true),
            ("pclmuldq", true),
            ("xd", true),
            ("check", true),
            ("l3-cache", true),
        ]);
        assert_eq!(aliases(&found, &full), ["lahf_lm", "pclmuldq"]);
    }

    #[test]
    fn counts_other_names_as_machine_types() {
        let types = json!([
            { "name": "pc-q35-7.2", "alias": "q35", "cpu-max": 288 },
            { "name": "pc-i440fx-1.4", "cpu-max": 255, "deprecated": true },
            { "name": "none", "cpu-max": 1 },
        ]);
        let types = machine_types(serde_json::from_value(types).unwrap());
        let told: Vec<_> = types.iter().map(|one| (one.name.as_str(), one.deprecated)).collect();
        assert_eq!(told, [("pc-i440fx-1.4", true), ("pc-q35-7.2", false), ("q35", false)]);
    }
}
