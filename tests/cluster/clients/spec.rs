//! What a machine is made of: its instance type written out, and the objects that it needs.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use test_kit::Test;

use super::client::{CLIENTS, Client};
use super::screen::try_for;
use crate::machines::guest::PATIENCE;
use crate::machines::{gates, storage};

/// An instance type for the guest of the tests.
pub fn instance_type() -> Value {
    json!({
        "apiVersion": "instancetype.kubevirt.io/v1beta1",
        "kind": "VirtualMachineInstancetype",
        "metadata": {"name": "small"},
        "spec": {"cpu": {"guest": 1}, "memory": {"guest": "192Mi"}},
    })
}

fn run_json(test: &Test, client: Client, arguments: &[&str]) -> Result<Value> {
    let printed = client.run(test, arguments)?;
    serde_json::from_str(&printed).with_context(|| format!("{client:?} {arguments:?}: {printed}"))
}

/// A machine with an instance type is written out, whether the cluster has it or a file.
pub fn is_written_out(test: &Test, manifest: &Value) -> Result<()> {
    let folder = storage::folder(test, "manifests")?;
    let write = |name: &str, manifest: &Value| -> Result<String> {
        let file = folder.join(name);
        std::fs::write(&file, manifest.to_string())?;
        file.into_os_string().into_string().ok().context("a path that is no text")
    };
    let good = write("good.json", manifest)?;
    let mut manifest = manifest.clone();
    manifest["spec"]["instancetype"]["name"] = json!("none");
    let bad = write("bad.json", &manifest)?;
    for client in CLIENTS {
        for from in [["--vm", "vm"], ["--file", &good]] {
            let vm = run_json(test, client, &[&["expand", "--output=json"], &from[..]].concat())?;
            let domain = &vm["spec"]["template"]["spec"]["domain"];
            ensure!(vm["spec"]["instancetype"].is_null(), "{client:?} {from:?}: {vm}");
            ensure!(domain["memory"]["guest"] == "192Mi", "{client:?} {from:?}: {domain}");
        }
        let said = client.fail(test, &["expand", "--file", &bad])?;
        ensure!(said.contains("none"), "{client:?}: {said}");
        let said = client.fail(test, &["expand", "--vm", "missing"])?;
        ensure!(said.contains("not found"), "{client:?}: {said}");
    }
    Ok(())
}

/// The kinds of all objects of a graph, the root first.
fn kinds(graph: &Value) -> Vec<String> {
    let own = graph["objectReference"]["kind"].as_str().unwrap_or_default().to_owned();
    let children = graph["children"].as_array().into_iter().flatten().flat_map(kinds);
    std::iter::once(own).chain(children).collect()
}

/// The objects that a machine and its instance need are told.
pub async fn is_told(test: &Test) -> Result<()> {
    {
        let _usual = gates::USUAL.read().await;
        gates::open(test)?;
    }
    // It takes a moment until all have heard of a gate.
    try_for(PATIENCE, || Client::Ours.run(test, &["objectgraph", "vm"])).await?;
    for client in CLIENTS {
        let of_machine = kinds(&run_json(test, client, &["objectgraph", "vm"])?);
        let has = |kind: &str| of_machine.iter().any(|found| found == kind);
        ensure!(of_machine[0] == "VirtualMachine", "{client:?}: {of_machine:?}");
        for kind in ["VirtualMachineInstance", "Pod", "VirtualMachineInstancetype"] {
            ensure!(has(kind), "{client:?}: {kind} is not among {of_machine:?}");
        }
        let of_instance = kinds(&run_json(test, client, &["objectgraph", "--vmi", "vm"])?);
        ensure!(of_instance == ["VirtualMachineInstance", "Pod"], "{client:?}: {of_instance:?}");
        let compute = "--selector=kubevirt.io/dependency-type=compute";
        let computing = kinds(&run_json(test, client, &["objectgraph", "vm", compute])?);
        ensure!(
            computing == ["VirtualMachine", "VirtualMachineInstance", "Pod"],
            "{client:?}: {computing:?}"
        );
        let said = client.fail(test, &["objectgraph", "missing"])?;
        ensure!(said.contains("not found"), "{client:?}: {said}");
    }
    Ok(())
}
