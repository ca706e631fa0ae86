//! What users ask of the installation as a whole.

use anyhow::{Result, ensure};
use test_kit::KUBEVIRT;

use super::client::{CLIENTS, Client};

#[tokio::test]
async fn the_installation_is_told_of() -> Result<()> {
    KUBEVIRT
        .run("installation", async |test| {
            for client in CLIENTS {
                let said = client.run(test, &["version"])?;
                ensure!(
                    said.contains("Client Version") && said.contains("Server Version"),
                    "{client:?}: {said}"
                );
                let said = client.run_anywhere(test, &["permitted-devices", "--namespace=kubevirt"])?;
                ensure!(said.contains("Host Devices") && said.contains("GPU Devices"), "{client:?}: {said}");
                ensure!(
                    !client.fail(test, &["permitted-devices"])?.is_empty(),
                    "{client:?}: nothing is said"
                );

                // There is no operator that would say more.
                let verbosity = |flag: &str| client.run_anywhere(test, &["adm", "log-verbosity", flag]);
                verbosity("--virt-operator=5")?;
                let shown = verbosity("--virt-operator")?;
                ensure!(shown.contains("virt-operator") && shown.contains('5'), "{client:?}: {shown}");
                verbosity("--reset")?;
                let shown = verbosity("--all")?;
                ensure!(shown.contains("virt-handler") && !shown.contains('5'), "{client:?}: {shown}");
            }
            // Without a namespace, ours looks in all of them.
            let said = Client::Ours.run_anywhere(test, &["permitted-devices"])?;
            ensure!(said.contains("Host Devices"), "{said}");
            Ok(())
        })
        .await
}
