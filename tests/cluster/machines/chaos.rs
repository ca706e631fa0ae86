//! Components that are killed at any moment: no machine is lost, doubled or disturbed.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::ListParams;
use kubevirt_api::vmi::status::VmiPhase;
use test_kit::{KUBEVIRT, Test};
use xtask::install::NAMESPACE;

use super::guest::{
    Guest, PATIENCE, apply_in_spite, delete_in_spite, instances, machines, may_boot, wait_for_phase,
};
use super::leftovers::Before;
use super::manifest::{guest, idle, machine, on_node};
use super::soak;

/// What is hit.
#[derive(Clone, Copy, Debug)]
enum Blow {
    /// A program of ours on a node, where it always runs.
    Kill(&'static str, &'static str),
    /// A program of ours, wherever it runs.
    KillAll(&'static str),
    /// The one controller of those there are that does the work.
    KillLeader,
    /// A part of a node.
    Restart(&'static str, &'static str),
}

/// So many blows in `make test`: each of them once, and some once more.
const ROUNDS: u64 = 12;

const BLOWS: [Blow; 9] = [
    Blow::Kill("virt-handler", "node01"),
    Blow::Kill("virt-handler", "node02"),
    Blow::KillAll("virt-controller"),
    Blow::KillLeader,
    Blow::KillAll("virt-api"),
    Blow::Restart("node01", "kubelet"),
    Blow::Restart("node02", "kubelet"),
    Blow::Restart("node01", "containerd"),
    Blow::Restart("node02", "containerd"),
];
const NODES: [&str; 2] = ["node01", "node02"];
/// Machines that are there all the time: one with a guest and one without.
const OLD: [(&str, &str); 2] = [("guest", "node01"), ("idle", "node02")];
/// Within so many milliseconds something or other of a start and an end is under way.
const MOMENTS: usize = 2500;

#[tokio::test]
async fn nobody_notices_when_components_die() -> Result<()> {
    KUBEVIRT
        .run_alone("chaos", async |test| {
            let before = Before::now(test)?;
            let old = Old::start(test).await?;
            let mut chance = soak::Chance::new()?;
            let (order, rounds) = (chance.shuffle(&BLOWS), soak::rounds(ROUNDS)?);
            apply_in_spite(test, &machine("new0", "Always", idle())).await?;
            wait_for_phase(test, "new0", VmiPhase::Running).await?;
            for round in 0..rounds {
                let next = order.get(usize::try_from(round)?).copied();
                let blow = next.unwrap_or_else(|| *chance.pick(&BLOWS));
                let moment = Duration::from_millis(u64::try_from(chance.below(MOMENTS))?);
                let what = || format!("round {round}: {blow:?} after {moment:?}");
                eprintln!("{}", what());
                strike_amid(test, round, blow, moment).await.with_context(what)?;
                old.are_as_before(test).await.with_context(what)?;
                one_pod_each(test, &format!("new{}", round + 1)).await.with_context(what)?;
            }
            for name in ["guest", "idle", &format!("new{rounds}")] {
                delete_in_spite(test, name).await?;
                test.wait_until_gone_within(PATIENCE, &machines(test), name).await?;
            }
            before.again(test).await
        })
        .await
}

/// The machines that must notice nothing.
struct Old<'a> {
    guest: Guest<'a>,
    boot: String,
    instances: Vec<Option<String>>,
}

impl<'a> Old<'a> {
    async fn start(test: &'a Test) -> Result<Self> {
        let _leave = may_boot().await?;
        for (name, node) in OLD {
            let spec = if name == "guest" { guest(name)? } else { idle() };
            test.apply(&machine(name, "Always", on_node(spec, node))).await?;
        }
        let guest = Guest::wait(test, "guest").await?;
        let boot = guest.boot()?;
        Ok(Self { guest, boot, instances: uids(test).await? })
    }

    async fn are_as_before(&self, test: &Test) -> Result<()> {
        ensure!(uids(test).await? == self.instances, "a machine has lost its instance");
        self.guest.wait_for_ssh().await?;
        ensure!(self.guest.boot()? == self.boot, "the guest has booted anew");
        Ok(())
    }
}

async fn uids(test: &Test) -> Result<Vec<Option<String>>> {
    let mut all = Vec::new();
    for (name, _) in OLD {
        all.push(wait_for_phase(test, name, VmiPhase::Running).await?.uid());
    }
    Ok(all)
}

/// Has one machine come and another one go, and strikes while they do.
async fn strike_amid(test: &Test, round: u64, blow: Blow, moment: Duration) -> Result<()> {
    let (newcomer, leaving) = (format!("new{}", round + 1), format!("new{round}"));
    let spec = match blow {
        // Where it is felt.
        Blow::Kill(_, node) | Blow::Restart(node, _) => on_node(idle(), node),
        _ => idle(),
    };
    delete_in_spite(test, &leaving).await?;
    apply_in_spite(test, &machine(&newcomer, "Always", spec)).await?;
    tokio::time::sleep(moment).await;
    strike(test, blow).await?;
    wait_for_phase(test, &newcomer, VmiPhase::Running).await?;
    test.wait_until_gone_within(PATIENCE, &machines(test), &leaving).await?;
    test.wait_until_gone_within(PATIENCE, &instances(test), &leaving).await
}

/// Strikes until something is hit: who was hit before may still wait for its restart, or for its successor as leader.
async fn strike(test: &Test, blow: Blow) -> Result<()> {
    let begin = Instant::now();
    while hits(test, blow)? == 0 {
        ensure!(begin.elapsed() < PATIENCE, "nothing was hit");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

fn hits(test: &Test, blow: Blow) -> Result<usize> {
    match blow {
        Blow::Restart(node, part) => test.cluster().restart_component(&format!("{node}/{part}")).map(|()| 1),
        Blow::Kill(program, node) => kill(test, program, node),
        Blow::KillLeader => kill(test, "virt-controller", &node_of_leader(test)?),
        Blow::KillAll(program) => NODES.into_iter().map(|node| kill(test, program, node)).sum(),
    }
}

/// Kills every process of a program on a node, and returns how many there were.
fn kill(test: &Test, program: &str, node: &str) -> Result<usize> {
    let script = format!(
        "for p in /proc/[0-9]*; do \
             [ \"$(tr '\\0' '\\n' <$p/cmdline 2>/dev/null | head -n 1 | sed 's,.*/,,')\" = {program} ] && \
             kill -KILL ${{p#/proc/}} && echo $p; \
         done; true"
    );
    Ok(test.run_on(node, &script)?.lines().count())
}

fn node_of_leader(test: &Test) -> Result<String> {
    let get = |kind: &str, name: &str, field: &str| {
        let field = format!("--output=jsonpath={{{field}}}");
        test.cluster().kubectl(&["get", kind, name, "--namespace", NAMESPACE, &field])
    };
    let leader = get("lease", "virt-controller", ".spec.holderIdentity")?;
    // The name of its pod comes first.
    let pod = leader.split('_').next().filter(|pod| !pod.is_empty()).context("nobody leads")?;
    get("pod", pod, ".spec.nodeName")
}

async fn one_pod_each(test: &Test, newcomer: &str) -> Result<()> {
    let pods = test.api::<Pod>().list(&ListParams::default().labels("kubevirt.io=virt-launcher")).await?;
    let living = pods.items.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let mut names: Vec<_> =
        living.filter_map(|pod| pod.labels().get("vm.kubevirt.io/name").map(String::as_str)).collect();
    names.sort_unstable();
    ensure!(names == ["guest", "idle", newcomer], "launcher pods of {names:?}");
    Ok(())
}
