//! The memory of launcher pods: enough for what a machine costs, and a clear word when there is too little.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::{Value, json};
use test_kit::{KUBEVIRT, Test};

use super::guest::{
    Guest, PATIENCE, instances, launcher, machines, may_boot, phase, wait_for_event, wait_for_phase,
    wait_for_successor,
};
use super::leftovers::Traces;
use super::manifest::{guest, instance, machine};
use super::soak;

/// So many shapes in `make test`.
const ROUNDS: u64 = 2;

/// Takes all memory that the guest has, and uses its disks and CPUs.
const LOAD: &str = "mount -o remount,size=100% /dev/shm; \
    free=$(awk '/MemAvailable/ { print int($2 / 1024) }' /proc/meminfo); \
    for disk in /sys/block/vd[c-z]; do [ -e $disk ] && dd if=/dev/urandom of=/dev/${disk##*/} bs=1M count=8; done; \
    for cpu in /sys/devices/system/cpu/cpu[0-9]*; do gzip </bin/busybox | md5sum & done; wait; \
    dd if=/dev/zero of=/dev/shm/load bs=1M count=$((free - 24)) && sync && sleep 2";

/// Machines that cost memory in ways of their own: a name, their memory in MiB, and what they have besides.
fn shapes() -> Vec<(&'static str, u32, Value)> {
    vec![
        ("plain", 192, json!({"devices": {"autoattachGraphicsDevice": false}})),
        (
            "uefi",
            256,
            json!({
                "firmware": {"bootloader": {"efi": {"secureBoot": false}}},
                "devices": {"autoattachGraphicsDevice": true, "tpm": {}},
            }),
        ),
        (
            "rich",
            224,
            json!({
                "cpu": {"cores": 2},
                "ioThreadsPolicy": "auto",
                "devices": {"tpm": {}, "autoattachGraphicsDevice": true, "rng": {}},
            }),
        ),
        ("wide", 256, json!({"cpu": {"cores": 4}, "devices": {"autoattachGraphicsDevice": true}})),
        ("large", 1024, json!({"devices": {"autoattachGraphicsDevice": true}})),
    ]
}

/// An instance of the shape, with this many further disks and not a byte more than was counted for it.
fn bounded(memory: u32, more: &Value, disks: usize) -> Result<Value> {
    let mut spec = guest("load")?;
    let domain = &mut spec["domain"];
    merge(domain, more);
    let memory = format!("{memory}Mi");
    domain["memory"]["guest"] = json!(memory);
    domain["resources"] = json!({"requests": {"memory": memory}, "limits": {"memory": memory}});
    for number in 0..disks {
        let name = format!("more{number}");
        let disk = json!({"name": name, "disk": {"bus": "virtio"}});
        spec["domain"]["devices"]["disks"].as_array_mut().context("no disks")?.push(disk);
        let volume = json!({"name": name, "emptyDisk": {"capacity": "32Mi"}});
        spec["volumes"].as_array_mut().context("no volumes")?.push(volume);
    }
    Ok(spec)
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// What the container of the machine has used at most, and may use, in MiB.
fn peak(test: &Test, pod: &Pod) -> Result<(u64, u64)> {
    // What the kernel can take back, such as copies of files, does not count.
    let files =
        "cat memory.max_usage_in_bytes memory.limit_in_bytes 2>/dev/null || cat memory.peak memory.max";
    let said = in_memory_group(test, pod, files)?;
    let numbers: Vec<u64> = said.lines().filter_map(|line| line.parse().ok()).collect();
    let [peak, limit] = numbers[..] else { anyhow::bail!("memory of {}: {said:?}", pod.name_any()) };
    Ok((peak >> 20, limit >> 20))
}

/// What a script says on the pod's node, in the folder of the control group that bounds the machine's memory.
fn in_memory_group(test: &Test, pod: &Pod, script: &str) -> Result<String> {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).context("a pod without node")?;
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
    let compute = statuses.unwrap_or_default().iter().find(|it| it.name == "compute");
    let id = compute.and_then(|it| it.container_id.as_deref()?.split_once("://")).context("no container")?.1;
    // Either version of control groups, or both: in one of the folders memory is counted.
    let folders = format!("find /sys/fs/cgroup -type d -name '*{id}*'");
    let folder = format!("for it in $({folders}); do [ -e $it/memory.stat ] && echo $it; done | head -n 1");
    let script = format!("cd $({folder}) && {{ {script}; }}");
    test.run_on(&node, &script)
}

#[tokio::test]
async fn machines_need_no_more_memory_than_their_pods_have() -> Result<()> {
    KUBEVIRT
        .run("overhead", async |test| {
            let mut chance = soak::Chance::new()?;
            let (shapes, rounds) = (shapes(), soak::rounds(ROUNDS)?);
            let mut table =
                vec![format!("{:<8} {:>6} {:>6} {:>6} {:>6}", "shape", "disks", "guest", "peak", "limit")];
            for round in 0..rounds {
                let (name, memory, more) = &shapes[usize::try_from(round)? % shapes.len()];
                let disks = *chance.pick(&[1, 4, 8]);
                let (peak, limit) = one(test, &bounded(*memory, more, disks)?)
                    .await
                    .with_context(|| format!("{name} with {disks} more disks\n{}", table.join("\n")))?;
                table.push(format!("{name:<8} {disks:>6} {memory:>6} {peak:>6} {limit:>6}"));
            }
            println!("Memory in MiB:\n{}", table.join("\n"));
            Ok(())
        })
        .await
}

/// Boots a guest, has it use all its memory, and measures.
async fn one(test: &Test, spec: &Value) -> Result<(u64, u64)> {
    let _leave = may_boot().await?;
    test.apply(&instance("load", spec.clone())).await?;
    let shell = Guest::wait(test, "load").await?;
    shell.start(&format!("{LOAD}; : >/run/loaded"));
    let vmi = wait_for_load(test, &shell).await?;
    let measured = peak(test, &launcher(test, &vmi).await?)?;
    instances(test).delete("load", &DeleteParams::default()).await?;
    test.wait_until_gone(&instances(test), "load").await?;
    Ok(measured)
}

/// Waits until the guest has done what it was told, without being killed on the way.
async fn wait_for_load(test: &Test, shell: &Guest<'_>) -> Result<VirtualMachineInstance> {
    let begin = Instant::now();
    loop {
        let vmi = instances(test).get("load").await?;
        ensure!(phase(&vmi) == Some(VmiPhase::Running), "the guest is {:?}", phase(&vmi));
        if shell.run("test -e /run/loaded").is_ok() {
            return Ok(vmi);
        }
        ensure!(begin.elapsed() < PATIENCE, "the guest does not come to an end");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test]
async fn a_machine_that_outgrows_its_pod_fails_with_that_reason_and_runs_again() -> Result<()> {
    KUBEVIRT
        .run("out-of-memory", async |test| {
            test.apply(&machine("vm", "RerunOnFailure", bounded(128, &json!({}), 0)?)).await?;
            let vmi = wait_for_phase(test, "vm", VmiPhase::Running).await?;
            let first = vmi.uid().context("no UID")?;
            let traces = Traces::of(test, &vmi).await?;
            // A guest alone does not get there, as the test above shows. Who helps is not of the pod, and so the kernel
            // does not choose it; and it takes so little that the machine's end is enough.
            let greed = "echo $$ >cgroup.procs; { head -c 160M /dev/zero; sleep 30; } | tail -c 160M | wc -c";
            // What becomes of the help itself does not matter.
            let _ = in_memory_group(test, &launcher(test, &vmi).await?, greed);
            wait_for_event(test, "vm", "the pod reached its memory limit").await?;
            wait_for_successor(test, "vm", &first).await?;
            traces.vanish(test).await?;
            machines(test).delete("vm", &DeleteParams::default()).await?;
            test.wait_until_gone(&instances(test), "vm").await
        })
        .await
}
