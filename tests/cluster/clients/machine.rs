//! What users do with a machine whose guest runs.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use test_kit::KUBEVIRT;

use super::{memory_dump, moves, spec, volumes, why};
use crate::machines::guest::{Guest, may_boot};
use crate::machines::manifest::{guest, machine};

/// A guest whose size is that of an instance type, and which moves rather than ends.
fn with_instance_type() -> Result<Value> {
    let mut template = guest("vm")?;
    template["domain"].as_object_mut().and_then(|domain| domain.remove("memory"));
    template["evictionStrategy"] = json!("LiveMigrate");
    let mut manifest = machine("vm", "Always", template);
    manifest["spec"]["instancetype"] = json!({"name": "small", "kind": "VirtualMachineInstancetype"});
    Ok(manifest)
}

/// One guest, and all that can be asked of its machine.
#[tokio::test]
async fn a_machine_is_looked_into_and_changed_while_it_runs() -> Result<()> {
    KUBEVIRT
        .run("machine", async |test| {
            test.apply(&spec::instance_type()).await?;
            let manifest = with_instance_type()?;
            let leave = may_boot().await?;
            test.apply(&manifest).await?;
            let shell = Guest::wait(test, "vm").await?;

            spec::is_written_out(test, &manifest).context("expand")?;
            spec::is_told(test).await.context("objectgraph")?;
            why::a_running_machine_is_fine(test, "vm").await.context("why")?;
            why::its_use_is_shown(test, "vm").context("top")?;
            moves::migrations_are_asked_for(test).await.context("migrate")?;
            moves::evacuations_are_called_off(test).await.context("evacuate")?;
            volumes::come_and_go(test, &shell, "vm", &["--persist"]).await.context("volumes")?;
            // Most of the rest is waiting, in which others may boot.
            drop(leave);
            memory_dump::is_taken(test).await.context("memory dump")
        })
        .await
}
