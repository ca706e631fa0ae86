//! Probes of guests: readiness follows the guest, and a guest that is not alive any more is ended.

use anyhow::Result;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::{Value, json};
use test_kit::{KUBEVIRT, Test, conditions};

use super::guest::{Guest, PATIENCE, instances, may_boot, phase, wait_for_event};
use super::manifest::{guest, instance, user_data};

/// A probe that is carried out often.
fn often(what: Value) -> Value {
    let mut probe = json!({"periodSeconds": 2, "timeoutSeconds": 10, "failureThreshold": 2});
    for (key, value) in what.as_object().into_iter().flatten() {
        probe[key] = value.clone();
    }
    probe
}

/// A probe that leaves a guest the time to boot on a busy machine.
fn late(what: Value) -> Value {
    let mut probe = often(what);
    probe["initialDelaySeconds"] = json!(90);
    probe["failureThreshold"] = json!(10);
    probe
}

async fn wait_for_ready(test: &Test, name: &str, status: &str) -> Result<()> {
    let what = format!("is ready: {status}");
    let is = conditions::is::<VirtualMachineInstance>("Ready", status);
    test.wait_within(PATIENCE, &instances(test), name, &what, is).await.map(drop)
}

/// Waits until an instance has ended, and says why.
async fn wait_for_end(test: &Test, name: &str) -> Result<()> {
    let ended =
        |vmi: &VirtualMachineInstance| matches!(phase(vmi), Some(VmiPhase::Failed | VmiPhase::Succeeded));
    test.wait_within(PATIENCE, &instances(test), name, "has ended", ended).await?;
    wait_for_event(test, name, "iveness probe").await.map(drop)
}

#[tokio::test]
async fn a_guest_is_ready_while_it_serves_and_ended_when_its_agent_is_silent() -> Result<()> {
    KUBEVIRT
        .run("probe-http", async |test| {
            let _leave = may_boot().await?;
            let mut spec = guest("web")?;
            spec["readinessProbe"] = often(json!({"httpGet": {"port": 8080, "path": "/ready"}}));
            spec["livenessProbe"] = late(json!({"guestAgentPing": {}}));
            // The other kind of cloud-init disk, on the way.
            spec["volumes"][1] =
                json!({"name": "cloud-init", "cloudInitConfigDrive": {"userData": user_data("web")?}});
            test.apply(&instance("web", spec)).await?;
            let shell = Guest::wait(test, "web").await?;
            wait_for_ready(test, "web", "False").await?;
            shell.run("mkdir -p /run/www && : >/run/www/ready && httpd -p 8080 -h /run/www")?;
            wait_for_ready(test, "web", "True").await?;
            shell.run("rm /run/www/ready")?;
            wait_for_ready(test, "web", "False").await?;
            shell.run("killall -STOP qemu-ga")?;
            wait_for_end(test, "web").await
        })
        .await
}

#[tokio::test]
async fn a_guest_is_ready_when_a_command_says_so_and_ended_when_its_port_closes() -> Result<()> {
    KUBEVIRT
        .run("probe-exec", async |test| {
            let _leave = may_boot().await?;
            let mut spec = guest("app")?;
            spec["readinessProbe"] = often(json!({"exec": {"command": ["cat", "/run/ready"]}}));
            spec["livenessProbe"] = late(json!({"tcpSocket": {"port": 8080}}));
            let user_data = user_data("app")? + "  - httpd -p 8080 -h /run\n";
            spec["volumes"][1] = json!({"name": "cloud-init", "cloudInitNoCloud": {"userData": user_data}});
            test.apply(&instance("app", spec)).await?;
            let shell = Guest::wait(test, "app").await?;
            wait_for_ready(test, "app", "False").await?;
            shell.run(": >/run/ready")?;
            wait_for_ready(test, "app", "True").await?;
            shell.run("rm /run/ready")?;
            wait_for_ready(test, "app", "False").await?;
            shell.run("killall httpd")?;
            wait_for_end(test, "app").await
        })
        .await
}
