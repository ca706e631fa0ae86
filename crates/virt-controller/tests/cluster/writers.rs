//! Two writers of one list: the controller and the node's handler both report conditions.

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kubevirt_api::condition::{self, Condition};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_component::patch;
use serde_json::json;

use crate::controllers::run;
use crate::instances::{create, hand_over};
use crate::kubelet;

const ROUNDS: usize = 20;

#[tokio::test]
async fn neither_writer_loses_what_the_other_wrote() -> Result<()> {
    run("writers", async |test| {
        let created = create(test, "web", json!([])).await?;
        let (_, pod) = hand_over(test, &created).await?;
        let (vmis, pods) = (test.api::<VirtualMachineInstance>(), test.api::<Pod>());
        let handler = async {
            for round in 0..ROUNDS {
                report(&vmis, &format!("Test{round}")).await?;
            }
            anyhow::Ok(())
        };
        // Each change of the pod has the controller write readiness.
        let kubelet = async {
            for round in 0..ROUNDS {
                kubelet::run(&pods, &pod, round % 2 == 0).await?;
                tokio::task::yield_now().await;
            }
            kubelet::run(&pods, &pod, true).await
        };
        tokio::try_join!(handler, kubelet)?;
        let all_there = |vmi: &VirtualMachineInstance| {
            let conditions = vmi.status.as_ref().and_then(|status| status.conditions.as_deref());
            let holds = |type_: &str| condition::find(conditions, type_).is_some_and(Condition::is_true);
            holds("Ready") && (0..ROUNDS).all(|round| holds(&format!("Test{round}")))
        };
        test.wait(&vmis, "web", "has the conditions of both", all_there).await?;
        // A late write of the controller would show by now, or with the next change.
        vmis.patch(
            "web",
            &PatchParams::default(),
            &Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}})),
        )
        .await?;
        test.wait(&vmis, "web", "still has the conditions of both", all_there).await?;
        Ok(())
    })
    .await
}

/// Reports a condition and a running guest, as the handler does: over what was seen, again if it was not the latest.
async fn report(vmis: &Api<VirtualMachineInstance>, type_: &str) -> Result<()> {
    loop {
        let seen = vmis.get("web").await?;
        let mut wanted = seen.clone();
        let status = wanted.status.get_or_insert_default();
        status.phase = Some(VmiPhase::Running);
        let condition =
            Condition { type_: type_.to_owned(), status: "True".to_owned(), ..Condition::default() };
        status.conditions.get_or_insert_default().push(condition);
        match patch::write(vmis, &seen, &wanted).await {
            Err(error) if patch::is_conflict(&error) => {}
            outcome => return Ok(outcome.map(drop)?),
        }
    }
}
