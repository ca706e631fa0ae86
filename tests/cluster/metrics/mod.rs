//! What the components tell a real Prometheus while a guest runs.

mod objects;
mod prometheus;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use serde_json::Value;
use test_kit::KUBEVIRT;

use crate::machines::guest::{Guest, instances, machines, may_boot};
use prometheus::{COMPONENTS, Prometheus};

/// For launchers, handlers and Prometheus to have been asked a few times on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// What has no value here, and why. A name that ends in `_` stands for all that begin with it.
const NOT_HERE: [(&str, &str); 12] = [
    ("kubevirt_virt_operator_", "there is no operator"),
    ("kubevirt_vmi_gpu_info", "there is no GPU"),
    ("kubevirt_console_active_connections", "no stream is open"),
    ("kubevirt_vnc_active_connections", "no stream is open"),
    ("kubevirt_portforward_active_tunnels", "no stream is open"),
    ("kubevirt_usbredir_active_connections", "no stream is open"),
    ("kubevirt_vmi_last_api_connection_timestamp_seconds", "no stream was open"),
    ("kubevirt_vmi_guest_os_panic_total", "no guest gave up"),
    ("kubevirt_vmi_migration_data_", "nothing migrates"),
    ("kubevirt_vmi_guest_load_", "the agent of the test guest is too old to tell"),
    ("kubevirt_vmi_vcpu_wait_seconds_total", "the kernel may keep no statistics of waiting tasks"),
    ("kubevirt_node_deprecated_machine_types", "depends on the QEMU of the launcher's image"),
];

/// The same for what the guest's own state decides.
const MOVES: [&str; 4] = [
    "kubevirt_vmi_migration_dirty_memory_rate_bytes",
    "kubevirt_vmi_migration_memory_transfer_rate_bytes",
    "kubevirt_vmi_migration_start_time_seconds",
    "kubevirt_vmi_migration_end_time_seconds",
];

/// The names and kinds of KubeVirt's metrics.
const REFERENCE: &str = include_str!("../../../crates/kubevirt/tests/binary/metrics/reference.txt");

fn expected() -> BTreeSet<String> {
    let left_out = |name: &str| {
        let listed = NOT_HERE
            .iter()
            .any(|(known, _)| if known.ends_with('_') { name.starts_with(known) } else { name == *known });
        listed || MOVES.contains(&name)
    };
    let lines = REFERENCE.lines().filter_map(|line| line.split_once(' '));
    let names = lines.filter(|(name, _)| !left_out(name));
    names
        .map(|(name, kind)| if kind == "Histogram" { format!("{name}_count") } else { name.to_owned() })
        .collect()
}

#[tokio::test]
async fn prometheus_finds_every_metric() -> Result<()> {
    KUBEVIRT
        .run("metrics", async |test| {
            let leave = may_boot().await?;
            objects::make(test).await?;
            let prometheus = Prometheus::start(test).await?;
            let guest = Guest::wait(test, objects::RUNNING).await?;
            drop(leave);
            // Something is written, so that disks have been flushed.
            guest.run("echo x >/data/x; sync")?;
            // The end of an instance is measured as well.
            machines(test).delete(objects::ENDED, &DeleteParams::default()).await?;
            test.wait_until_gone(&instances(test), objects::ENDED).await?;

            let expected = expected();
            let begin = Instant::now();
            loop {
                let told = names(&prometheus)?;
                let missing: Vec<_> = expected.difference(&told).collect();
                if missing.is_empty() {
                    break;
                }
                ensure!(begin.elapsed() < PATIENCE, "without a value: {missing:#?}\n{}", prometheus.log());
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            values(test, &prometheus)?;
            for component in COMPONENTS {
                let down = prometheus.query(&format!("up{{job=\"{component}\"}} == 0"))?;
                ensure!(down.is_empty(), "{component} cannot be scraped: {down:?}");
                check(test, component).await?;
            }
            Ok(())
        })
        .await
}

fn names(prometheus: &Prometheus) -> Result<BTreeSet<String>> {
    // It may not answer yet.
    let found = prometheus.query("count by (__name__) ({__name__=~\"kubevirt_.+\"})").unwrap_or_default();
    let name = |series: &Value| series["metric"]["__name__"].as_str().map(str::to_owned);
    Ok(found.iter().filter_map(name).collect())
}

/// Some values that are known.
fn values(test: &test_kit::Test, prometheus: &Prometheus) -> Result<()> {
    let (namespace, name) = (test.namespace(), objects::RUNNING);
    let place = format!("namespace=\"{namespace}\",name=\"{name}\"");
    for (query, holds) in [
        (format!("kubevirt_vm_info{{{place}}}"), " == 1"),
        (
            format!("kubevirt_vmi_info{{{place},phase=\"running\",evictable=\"true\",outdated=\"false\"}}"),
            " == 1",
        ),
        (format!("kubevirt_vm_labels{{{place},label_team=\"red\"}}"), " == 1"),
        (format!("kubevirt_vm_running_status_last_transition_timestamp_seconds{{{place}}}"), " > 1e9"),
        (format!("kubevirt_vmi_memory_domain_bytes{{{place}}}"), " == 192 * 1024 * 1024"),
        (format!("kubevirt_vmi_cpu_usage_seconds_total{{{place}}}"), " > 1"),
        (format!("kubevirt_vmi_network_receive_bytes_total{{{place},interface=\"default\"}}"), " > 0"),
        (format!("kubevirt_vmi_storage_read_traffic_bytes_total{{{place},drive=\"root\"}}"), " > 0"),
        (format!("kubevirt_vmi_vnic_info{{{place},binding_name=\"masquerade\"}}"), " == 1"),
        ("kubevirt_configuration_emulation_enabled".to_owned(), " == 1"),
        (
            format!("kubevirt_vm_disk_allocated_size_bytes{{namespace=\"{namespace}\"}}"),
            " == 1024 * 1024 * 1024",
        ),
        ("sum(kubevirt_virt_controller_leading_status)".to_owned(), " == 1"),
        ("sum(kubevirt_vmi_number_of_outdated)".to_owned(), " >= 0"),
    ] {
        let found = prometheus.query(&format!("{query}{holds}"))?;
        ensure!(!found.is_empty(), "not{holds}: {query} is {:?}", prometheus.query(&query)?);
    }
    Ok(())
}

/// Counters that KubeVirt named so, and everybody's dashboards do.
const BADLY_NAMED: &str = "_status_last_transition_timestamp_seconds";

async fn check(test: &test_kit::Test, component: &str) -> Result<()> {
    for pod in prometheus::pods(test, component).await?.into_keys() {
        let complaints = prometheus::complaints(test, &pod)?;
        let ours: Vec<_> = complaints
            .iter()
            .filter(|line| !(line.contains(BADLY_NAMED) && line.ends_with("should have \"_total\" suffix")))
            // Labels of instances are written as users write them.
            .filter(|line| !line.ends_with("label names should be written in 'snake_case' not 'camelCase'"))
            .collect();
        ensure!(ours.is_empty(), "promtool on {pod}: {ours:#?}");
    }
    Ok(())
}
