//! Every metric is told, with its labels.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_launcher_rpc::stats::{
    CpuStats, DiskStats, DomainStats, InterfaceStats, MemoryStats, MigrationStats, VcpuStats,
};
use serde_json::json;

use super::*;
use crate::labels::facts::{Facts, MachineType};

fn vmi(name: &str) -> Arc<VirtualMachineInstance> {
    let object = json!({
        "metadata": { "name": name, "namespace": "default", "labels": { "kubevirt.io/size": "small", "kubevirt.io-size": "x" } },
        "spec": { "domain": { "devices": {} } },
        "status": { "nodeName": "node01", "phase": "Running" },
    });
    Arc::new(serde_json::from_value(object).unwrap())
}

fn stats(name: &str) -> DomainStats {
    let all = Some(4096);
    DomainStats {
        name: name.into(),
        uuid: "u".into(),
        cpu: CpuStats { user: 1_500_000_000, system: 500_000_000 },
        memory: MemoryStats {
            resident: all,
            actual_balloon: all,
            domain: all,
            available: all,
            unused: all,
            usable: all,
            cached: all,
            swap_in: all,
            swap_out: all,
            major_faults: all,
            minor_faults: all,
            last_update: Some(1),
        },
        vcpus: (0..2)
            .map(|id| VcpuStats {
                id,
                time: 3_000_000_000,
                delay: Some(1),
                wait: Some(1),
                host_cpus: Some(4),
            })
            .collect(),
        interfaces: vec![InterfaceStats {
            name: "default".into(),
            received_bytes: 10,
            sent_bytes: 20,
            ..InterfaceStats::default()
        }],
        disks: vec![DiskStats { name: "root".into(), read_requests: 7, ..DiskStats::default() }],
        migration: Some(MigrationStats { total: 9, ..MigrationStats::default() }),
        load: Some([0.1, 0.2, 0.3]),
    }
}

fn measured(name: &str) -> Measured {
    let filesystem = json!({ "diskName": "vda1", "mountPoint": "/", "fileSystemType": "ext4", "usedBytes": 1, "totalBytes": 2 });
    Measured {
        vmi: vmi(name),
        stats: stats(name),
        filesystems: vec![serde_json::from_value(filesystem).unwrap()],
        dirty_rate: Some(2),
    }
}

#[test]
fn a_full_answer_has_every_metric() {
    let machine = MachineType { name: "pc-i440fx-1.4".into(), deprecated: true };
    let facts = Facts { machine_types: vec![machine, MachineType::default()], ..Facts::default() };
    let node = of_node(&facts, "node01");
    let families = collect(&[measured("one"), measured("two")]);
    // Of cards the kubelet tells.
    let cards = ["kubevirt_vmi_gpu_info"];
    let told: BTreeSet<_> = families.names().chain(node.names()).chain(cards).collect();
    assert_eq!(told, ALL.iter().map(|metric| metric.name).collect());

    for (family, metric) in [&families, &node].into_iter().flat_map(|families| {
        ALL.iter().flat_map(|metric| families.samples(metric.name).iter().map(move |sample| (sample, metric)))
    }) {
        let mut names: Vec<&str> = family.0.iter().map(|(name, _)| name.as_str()).collect();
        names
            .iter_mut()
            .filter(|name| name.starts_with("kubernetes_vmi_label_"))
            .for_each(|name| *name = "kubernetes_vmi_label_*");
        assert_eq!(names, metric.labels, "{}", metric.name);
    }

    let text = text([families, node]);
    let labels =
        "node=\"node01\",namespace=\"default\",name=\"one\",kubernetes_vmi_label_kubevirt_io_size=\"x\"";
    for line in [
        format!("kubevirt_vmi_cpu_usage_seconds_total{{{labels}}} 2"),
        format!("kubevirt_vmi_memory_resident_bytes{{{labels}}} 4096"),
        format!("kubevirt_vmi_vcpu_seconds_total{{{labels},id=\"1\",state=\"running\"}} 3"),
        format!("kubevirt_vmi_node_cpu_affinity{{{labels}}} 8"),
        format!("kubevirt_vmi_storage_iops_read_total{{{labels},drive=\"root\"}} 7"),
        format!("kubevirt_vmi_network_traffic_bytes_total{{{labels},interface=\"default\",type=\"tx\"}} 20"),
        format!(
            "kubevirt_vmi_filesystem_used_bytes{{{labels},disk_name=\"vda1\",mount_point=\"/\",file_system_type=\"ext4\"}} 1"
        ),
        format!("kubevirt_vmi_dirty_rate_bytes_per_second{{{labels}}} 2097152"),
        "kubevirt_vmi_migration_data_bytes_total{node=\"node01\",namespace=\"default\",name=\"one\"} 9"
            .to_owned(),
        "kubevirt_node_deprecated_machine_types{machine_type=\"pc-i440fx-1.4\",node=\"node01\"} 1".to_owned(),
    ] {
        assert!(text.lines().any(|told| told == line), "{line}\nin\n{text}");
    }
}

#[test]
fn what_is_not_known_is_not_told() {
    let families = collect(&[Measured {
        vmi: vmi("one"),
        stats: DomainStats::default(),
        filesystems: vec![],
        dirty_rate: None,
    }]);
    assert_eq!(
        families.names().collect::<Vec<_>>(),
        [
            "kubevirt_vmi_cpu_usage_seconds_total",
            "kubevirt_vmi_cpu_user_usage_seconds_total",
            "kubevirt_vmi_cpu_system_usage_seconds_total"
        ]
    );
    assert_eq!(collect(&[]), Families::default());
}

#[test]
fn only_so_many_ask_at_once() {
    let scraper = Scraper::new(2);
    let (one, _two) = (scraper.turn().unwrap(), scraper.turn().unwrap());
    assert!(scraper.turn().is_none());
    drop(one);
    assert!(scraper.turn().is_some());
}

/// A socket that takes connections and says nothing, and one where nobody listens, hold up nobody.
#[tokio::test]
async fn a_silent_launcher_is_left_out() {
    let tree = crate::devices::testing::Tree::new();
    let silent = tree.path().join("silent");
    let _listening = std::os::unix::net::UnixListener::bind(&silent).unwrap();
    let turn = Scraper::new(1).patient(Duration::from_millis(200)).turn().unwrap();
    let launchers = vec![(vmi("one"), silent), (vmi("two"), tree.path().join("nobody"))];
    let all = tokio::time::timeout(Duration::from_secs(60), turn.scrape(launchers)).await.unwrap();
    assert!(all.is_empty());
}
