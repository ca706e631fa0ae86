//! What users of each role may do, and what they may not.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use http::Method;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::{Value, json};
use test_kit::{Account, KUBEVIRT, Test};

use super::ask::answer;
use super::client::{Client, attempt};
use crate::machines::guest::wait_for_phase;
use crate::machines::manifest::{idle, machine};

/// Who there is, and the role that they have.
const ACCOUNTS: [(&str, Option<&str>); 6] = [
    ("admin", Some("kubevirt.io:admin")),
    ("edit", Some("kubevirt.io:edit")),
    ("view", Some("kubevirt.io:view")),
    ("migrate", Some("kubevirt.io:migrate")),
    // The cluster's own roles have what ours add to them.
    ("editor", Some("edit")),
    ("nobody", None),
];
const READERS: &[&str] = &["admin", "edit", "view", "editor"];
const WRITERS: &[&str] = &["admin", "edit", "editor"];
const EVERYBODY: &[&str] = &["admin", "edit", "view", "migrate", "editor", "nobody"];

/// A request, and who may make it. What would change something is only a plan.
struct Case {
    method: Method,
    path: String,
    body: Value,
    who: &'static [&'static str],
}

fn cases(namespace: &str) -> Vec<Case> {
    let kubevirt = format!("/apis/kubevirt.io/v1/namespaces/{namespace}");
    let subresources = format!("/apis/subresources.kubevirt.io/v1/namespaces/{namespace}");
    let case = |method, path: String, body, who| Case { method, path, body, who };
    let get = |path: String, who| case(Method::GET, path, Value::Null, who);
    let plan = || json!({"dryRun": ["All"]});
    let migration = json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {"name": "move"},
        "spec": {"vmiName": "vm"},
    });
    let installation = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts".to_owned();
    let put = |rest: &str, who| case(Method::PUT, format!("{subresources}/{rest}"), plan(), who);
    vec![
        get(format!("{kubevirt}/virtualmachines"), READERS),
        get(format!("{kubevirt}/virtualmachineinstances/vm"), READERS),
        get(format!("{subresources}/virtualmachineinstances/vm/guestosinfo"), READERS),
        get(format!("{subresources}/virtualmachines/vm/expand-spec"), READERS),
        get(format!("{subresources}/virtualmachineinstances/vm/console"), WRITERS),
        get(format!("{subresources}/virtualmachineinstances/vm/vnc"), WRITERS),
        get(format!("{subresources}/virtualmachineinstances/other/vnc/screenshot"), &["admin"]),
        get(format!("{subresources}/virtualmachineinstances/vm/portforward/22"), WRITERS),
        put("virtualmachines/vm/start", WRITERS),
        put("virtualmachines/vm/stop", WRITERS),
        put("virtualmachines/vm/restart", WRITERS),
        case(
            Method::PUT,
            format!("{subresources}/virtualmachines/vm/removememorydump?dryRun=All"),
            Value::Null,
            WRITERS,
        ),
        put("virtualmachineinstances/vm/pause", WRITERS),
        put("virtualmachines/vm/migrate", &["migrate"]),
        case(
            Method::POST,
            format!("{kubevirt}/virtualmachines?dryRun=All"),
            machine("other", "Halted", idle()),
            WRITERS,
        ),
        case(Method::DELETE, format!("{kubevirt}/virtualmachines/vm?dryRun=All"), Value::Null, WRITERS),
        case(Method::DELETE, format!("{kubevirt}/virtualmachines?dryRun=All"), Value::Null, &["admin"]),
        get(
            format!("{kubevirt}/virtualmachineinstancemigrations"),
            &["admin", "edit", "view", "migrate", "editor"],
        ),
        case(
            Method::POST,
            format!("{kubevirt}/virtualmachineinstancemigrations?dryRun=All"),
            migration,
            &["migrate"],
        ),
        get("/apis/subresources.kubevirt.io/v1/version".to_owned(), EVERYBODY),
        get(
            "/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterinstancetypes".to_owned(),
            EVERYBODY,
        ),
        get(installation.clone(), EVERYBODY),
        case(
            Method::PATCH,
            format!("{installation}/kubevirt?dryRun=All"),
            json!({"metadata": {"labels": {"some": "label"}}}),
            &[],
        ),
    ]
}

/// What our virtctl comes to as somebody, and what it says.
fn virtctl(test: &Test, account: &Account, arguments: &[&str]) -> Result<(bool, String)> {
    let mut command = Client::Ours.command(test, arguments)?;
    command.env("KUBECONFIG", &account.kubeconfig);
    let (ended, printed, complaint) = attempt(command)?;
    Ok((ended, printed + &complaint))
}

#[tokio::test]
async fn users_may_do_what_their_role_says_and_no_more() -> Result<()> {
    KUBEVIRT
        .run("roles", async |test| {
            let mut accounts = BTreeMap::new();
            for (name, role) in ACCOUNTS {
                accounts.insert(name, test.account(name, role).await?);
            }
            test.apply(&machine("vm", "Manual", idle())).await?;
            for name in ["view", "nobody"] {
                let (started, said) = virtctl(test, &accounts[name], &["start", "vm"])?;
                ensure!(!started && said.contains("forbidden"), "{name}: {said}");
            }
            let (started, said) = virtctl(test, &accounts["edit"], &["start", "vm"])?;
            ensure!(started, "{said}");
            wait_for_phase(test, "vm", VmiPhase::Running).await?;

            for Case { method, path, body, who } in cases(test.namespace()) {
                for (name, account) in &accounts {
                    let answer = answer(&account.client, &method, &path, &body).await?;
                    let refused = matches!(answer, Err((403, _)));
                    ensure!(refused != who.contains(name), "{name} {method} {path}: {answer:?}");
                }
            }
            Ok(())
        })
        .await
}
