//! Manifests that virtctl writes, and a cluster that takes them.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use test_kit::{KUBEVIRT, Test};

use super::client::{CLIENTS, Client};
use crate::machines::guest::machines;
use crate::machines::manifest::{idle, machine};

/// Has the cluster take what a client printed.
fn create(test: &Test, printed: &str, more: &[&str]) -> Result<()> {
    let arguments = ["create", "--namespace", test.namespace(), "--filename", "-"];
    test.cluster().kubectl_with_input(&[&arguments[..], more].concat(), printed).map(drop)
}

#[tokio::test]
async fn the_cluster_takes_what_either_client_writes() -> Result<()> {
    KUBEVIRT
        .run("written", async |test| {
            test.apply(&machine("source", "Halted", idle())).await?;
            for client in CLIENTS {
                let name = &format!("--name={}", client.word());
                let cpu_and_memory = ["create", "instancetype", "--cpu=1", "--memory=96Mi", name];
                create(test, &client.run(test, &cpu_and_memory)?, &[])?;
                let preference = ["create", "preference", "--cpu-topology=sockets", name];
                create(test, &client.run(test, &preference)?, &[])?;
                // Those of the whole cluster are only looked at: other tests see them.
                for arguments in [&cpu_and_memory, &preference[..]] {
                    let printed = client.run_anywhere(test, arguments)?;
                    ensure!(printed.contains("VirtualMachineCluster"), "{client:?}: {printed}");
                    create(test, &printed, &["--dry-run=server"])?;
                }
                let (size, taste) = (
                    format!("--instancetype=virtualmachineinstancetype/{}", client.word()),
                    format!("--preference=virtualmachinepreference/{}", client.word()),
                );
                let vm = client.run(test, &["create", "vm", name, "--run-strategy=Halted", &size, &taste])?;
                create(test, &vm, &[]).with_context(|| format!("{client:?}"))?;
                let target = format!("--target-name=copy-{}", client.word());
                let clone = ["create", "clone", "--source-name=source", &target, name];
                create(test, &client.run(test, &clone)?, &[]).with_context(|| format!("{client:?}"))?;
            }
            a_template_is_filled_in(test).await.context("template")
        })
        .await
}

/// A template of a machine that has a parameter.
fn template() -> Value {
    json!({
        "apiVersion": "template.kubevirt.io/v1alpha1",
        "kind": "VirtualMachineTemplate",
        "metadata": {"name": "web"},
        "spec": {
            "parameters": [{"name": "NAME", "required": true}],
            "virtualMachine": machine("${NAME}", "Halted", idle()),
        },
    })
}

/// A template of the cluster becomes a machine here, and who wants it done there is told that this cannot be had.
async fn a_template_is_filled_in(test: &Test) -> Result<()> {
    test.apply(&template()).await?;
    let process = ["template", "process", "web", "--param=NAME=filled-in"];
    let printed = Client::Ours.run(test, &[&process[..], &["--local"]].concat())?;
    create(test, &printed, &[])?;
    machines(test).get("filled-in").await?;
    for more in [&[][..], &["--create"]] {
        let said = Client::Ours.fail(test, &[&process[..], more].concat())?;
        ensure!(said.contains("templates are not made into machines"), "{more:?}: {said}");
    }
    let said = Client::Ours.fail(test, &["template", "process", "web", "--local"])?;
    ensure!(said.contains("NAME"), "{said}");
    Ok(())
}
