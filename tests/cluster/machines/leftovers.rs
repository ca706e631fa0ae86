//! Nothing remains of an instance on its node: no process, mount, namespace, link, control group or record.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use test_kit::{KUBEVIRT, Test};

use super::guest::{PATIENCE, instances, launcher, may_boot, wait_for_phase};
use super::manifest::{guest, instance};

/// Says what a node has of pods and machines, a line each. Taps are in the namespaces of pods and go with them. What the
/// handler writes down is among the files: a record for each instance by its UID, and one for each pod. Control groups
/// are those of the whole computer, of which only the cluster's count.
const CENSUS: &str = r#"
awk '{ print "mount " $5 }' /proc/self/mountinfo
ls /run/netns | sed 's/^/network namespace /'
ip -o link | sed 's/^[0-9]*: \([^:@]*\).*link-netns \([^ ]*\).*/link \1 to \2/; s/^[0-9]*: \([^:@]*\).*/link \1/'
ls -l /proc/[0-9]*/task/[0-9]*/ns/net /proc/[0-9]*/fd 2>/dev/null |
    grep -o 'net:\[[0-9]*\]' | sort -u | grep -n . | sed 's/:.*//; s/^/network namespace in use, number /'
for process in /proc/[0-9]*; do
    pod=$(grep -o -m 1 'pod[0-9a-f-]\{36\}' $process/cgroup) && echo "process $(cat $process/comm) in $pod"
done 2>/dev/null
find /sys/fs/cgroup -type d -path "*/$cluster/*" -name 'pod*-*' -prune -printf 'control group %p\n' 2>/dev/null
find /var/lib/kubelet/pods -mindepth 1 -maxdepth 1 -printf 'file %p\n'
find /var/lib/kubelet/pods/*/volumes/*empty-dir /var/run/kubevirt /var/run/kubevirt-private /var/lib/cni/results \
    -printf 'file %p\n' 2>/dev/null
grep -rs . /var/lib/cni/networks --exclude='last_reserved*' | tr -d '\r' | sed 's/^/address /'
true"#;

/// By what else a pod is known on its node: its containers, and its network namespace.
fn names_of(uid: &str) -> String {
    format!(
        "for group in $(grep -l {uid} /proc/[0-9]*/cgroup 2>/dev/null); do \
             sed -n 's,.*{uid}[^/]*/\\([^/]*\\).*,\\1,p' $group; \
             stat -c '%i %n' /run/netns/* | sed -n \"s,^$(stat -Lc %i ${{group%cgroup}}ns/net) /run/netns/,,p\"; \
         done 2>/dev/null | sort -u"
    )
}

fn census(test: &Test, node: &str) -> Result<BTreeSet<String>> {
    let script = format!("cluster={}{CENSUS}", test.cluster().layout().cgroup());
    Ok(test.run_on(node, &script)?.lines().map(str::to_owned).collect())
}

/// What is on the node of a pod.
pub struct Traces {
    node: String,
    /// Every line of a census that is about the pod has one of them.
    marks: Vec<String>,
}

impl Traces {
    /// Of a pod that is on a node.
    pub fn of_pod(test: &Test, pod: &Pod) -> Result<Self> {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).context("a pod without node")?;
        let uid = pod.uid().context("a pod without UID")?;
        let names = test.run_on(&node, &names_of(&uid))?;
        let marks = names.lines().map(str::to_owned).chain([uid]).collect();
        Ok(Self { node, marks })
    }

    /// Of an instance and its launcher.
    pub async fn of(test: &Test, vmi: &VirtualMachineInstance) -> Result<Self> {
        let mut traces = Self::of_pod(test, &launcher(test, vmi).await?)?;
        traces.marks.push(vmi.uid().context("an instance without UID")?);
        Ok(traces)
    }

    /// What is there now, a line each.
    pub fn now(&self, test: &Test) -> Result<Vec<String>> {
        let is_meant = |line: &String| self.marks.iter().any(|mark| line.contains(mark));
        Ok(census(test, &self.node)?.into_iter().filter(is_meant).collect())
    }

    /// Waits until nothing is there.
    pub async fn vanish(&self, test: &Test) -> Result<()> {
        self.shrink_to(test, 0).await
    }

    /// Waits until no more than so many lines are there.
    pub async fn shrink_to(&self, test: &Test, lines: usize) -> Result<()> {
        let begin = Instant::now();
        loop {
            let left = self.now(test)?;
            if left.len() <= lines {
                return Ok(());
            }
            ensure!(begin.elapsed() < PATIENCE, "this remains on {}:\n{}", self.node, left.join("\n"));
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
    }
}

/// What all nodes have, for a test that is alone on the cluster.
pub struct Before(BTreeMap<String, BTreeSet<String>>);

impl Before {
    /// What they have now.
    pub fn now(test: &Test) -> Result<Self> {
        let nodes = test.cluster().nodes().into_iter();
        Ok(Self(nodes.map(|node| Ok((node.name.clone(), census(test, &node.name)?))).collect::<Result<_>>()?))
    }

    /// Waits until they have nothing more.
    pub async fn again(&self, test: &Test) -> Result<()> {
        let begin = Instant::now();
        loop {
            let now = Self::now(test)?;
            // A container that was started anew has another name, and its root another place.
            let is_new = |(node, line): &(&String, &String)| {
                !self.0[*node].contains(*line) && !line.contains("/rootfs")
            };
            let all = now.0.iter().flat_map(|(node, lines)| lines.iter().map(move |line| (node, line)));
            let more: Vec<String> =
                all.filter(is_new).map(|(node, line)| format!("{node}: {line}")).collect();
            if more.is_empty() {
                return Ok(());
            }
            ensure!(begin.elapsed() < PATIENCE, "this remains:\n{}", more.join("\n"));
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        }
    }
}

#[tokio::test]
async fn nothing_remains_of_a_deleted_instance() -> Result<()> {
    KUBEVIRT
        .run("leftovers", async |test| {
            let _leave = may_boot().await?;
            test.apply(&instance("vmi", guest("vmi")?)).await?;
            let vmi = wait_for_phase(test, "vmi", VmiPhase::Running).await?;
            let pod = launcher(test, &vmi).await?;
            let traces = Traces::of(test, &vmi).await?;
            let found = traces.now(test)?;
            // What is not found while it is there would not be found if it stayed.
            for kind in ["mount", "network namespace", "link", "process", "control group", "file", "address"]
            {
                ensure!(
                    found.iter().any(|line| line.starts_with(kind)),
                    "no {kind} among\n{}",
                    found.join("\n")
                );
            }
            for record in ["ghost-records/", "kubevirt-private/pods/"] {
                ensure!(
                    found.iter().any(|line| line.contains(record)),
                    "no {record} among\n{}",
                    found.join("\n")
                );
            }
            instances(test).delete("vmi", &DeleteParams::default()).await?;
            test.wait_until_gone(&instances(test), "vmi").await?;
            test.wait_until_gone(&test.api::<Pod>(), &pod.name_any()).await?;
            traces.vanish(test).await
        })
        .await
}
