//! A machine from its first start to its end: started paused, with credentials that its agent sets, and shut down.

use anyhow::{Context, Result, ensure};
use kubevirt_api::vm::status::PrintableStatus;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::json;
use test_kit::{KUBEVIRT, Test, conditions};

use super::client::Client;
use super::lifecycle::wait_for_pause;
use crate::machines::guest::{
    Guest, PATIENCE, instances, may_boot, wait_for_event, wait_for_phase, wait_for_status,
};
use crate::machines::key::key;
use crate::machines::manifest::{guest, machine};

const PASSWORD: &str = "a-new-password";
const OTHER_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOtherOtherOtherOtherOtherOtherOtherOther other";

/// Both kinds of credentials get into secrets, and a key that is not wanted any more out of them.
fn are_given(test: &Test) -> Result<()> {
    let file = key()?.private.with_extension("pub");
    let file = file.to_str().context("a path that is no text")?;
    let keys = |client: Client, command: &str, flag: &str, key: &str| {
        client.run(test, &["credentials", command, "--user=guest", flag, key, "vm"])
    };
    let said = keys(Client::Ours, "add-ssh-key", "--file", file)?;
    ensure!(said.contains("Successfully added secret"), "{said}");
    keys(Client::Original, "add-ssh-key", "--value", OTHER_KEY)?;
    let said = keys(Client::Ours, "add-ssh-key", "--value", OTHER_KEY)?;
    ensure!(said.contains("already contains"), "{said}");
    keys(Client::Ours, "remove-ssh-key", "--value", OTHER_KEY)?;
    let set = ["credentials", "set-password", "--user=guest", "--password", PASSWORD, "vm"];
    // It may be that of other machines too.
    let said = Client::Ours.fail(test, &set)?;
    ensure!(said.contains("owner reference"), "{said}");
    Client::Ours.run(test, &[&set[..], &["--force"]].concat()).map(drop)
}

/// The guest has them.
async fn are_there(test: &Test, shell: &Guest<'_>) -> Result<()> {
    let set = conditions::has::<VirtualMachineInstance>("AccessCredentialsSynchronized");
    test.wait_within(PATIENCE, &instances(test), "vm", "has its credentials", set).await?;
    let keys = shell.run("cat /home/guest/.ssh/authorized_keys")?;
    ensure!(keys.contains(&key()?.public) && !keys.contains(OTHER_KEY), "{keys}");
    let crypted = shell.run("grep ^guest: /etc/shadow | cut -d : -f 2")?;
    let salt = crypted.split('$').nth(2).context("no salt")?;
    let expected = shell.run(&format!("printf %s {PASSWORD} | mkpasswd -m sha512 -S '{salt}' -P 0"))?;
    ensure!(crypted == expected, "the password is another");
    Ok(())
}

#[tokio::test]
async fn a_machine_starts_paused_gets_its_credentials_and_shuts_down() -> Result<()> {
    KUBEVIRT
        .run("credentials", async |test| {
            test.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "passwords"}}))
                .await?;
            let mut spec = guest("vm")?;
            // Enough for a guest on a busy machine: it is not to be ended by force.
            spec["terminationGracePeriodSeconds"] = json!(600);
            spec["accessCredentials"] = json!([{"userPassword": {
                "source": {"secret": {"secretName": "passwords"}},
                "propagationMethod": {"qemuGuestAgent": {}},
            }}]);
            test.apply(&machine("vm", "Halted", spec)).await?;
            are_given(test)?;

            let _leave = may_boot().await?;
            Client::Ours.run(test, &["start", "vm", "--paused"])?;
            wait_for_phase(test, "vm", VmiPhase::Running).await?;
            wait_for_pause(test, "vm", true).await?;
            wait_for_status(test, "vm", PrintableStatus::Paused).await?;
            Client::Original.run(test, &["unpause", "vm", "vm"])?;
            let shell = Guest::wait(test, "vm").await?;
            are_there(test, &shell).await?;

            Client::Ours.run(test, &["stop", "vm"])?;
            wait_for_status(test, "vm", PrintableStatus::Stopped).await?;
            let events = wait_for_event(test, "vm", "The guest was shut down").await?;
            ensure!(!events.contains("The machine was ended"), "{events}");
            Ok(())
        })
        .await
}
