//! What a node asks a QEMU about itself.

use kubevirt_qemu::machine::{CpuDefinition, CpuModel, Expansion};

use crate::common::start;

#[tokio::test]
async fn a_node_learns_what_it_can_run() {
    let (_process, machine) = start(&["-machine", "none"]).await;
    let models = machine.cpu_definitions().await.unwrap();
    let qemu64 = models.iter().find(|model| model.name == "qemu64").unwrap();
    assert!(qemu64.alias_of.as_deref().is_some_and(|model| model.starts_with("qemu64-v")), "{qemu64:?}");
    assert!(models.iter().any(|model| !model.is_usable()), "emulation cannot do everything");
    assert!(models.iter().any(CpuDefinition::is_usable));

    let full = machine.expand_cpu(&CpuModel::named("max"), Expansion::Full).await.unwrap();
    assert!(full.features().any(|feature| feature == "sse2"));
    let mut without = CpuModel::named("max");
    without.props.insert("sse2".to_owned(), false.into());
    let expanded = machine.expand_cpu(&without, Expansion::Static).await.unwrap();
    assert_eq!(expanded.name, "base");
    assert!(!expanded.features().any(|feature| feature == "sse2"));
    assert!(machine.expand_cpu(&CpuModel::named("abacus"), Expansion::Full).await.is_err());

    let machines = machine.machine_types().await.unwrap();
    let q35 = machines.iter().find(|machine| machine.alias.as_deref() == Some("q35")).unwrap();
    assert!(q35.name.starts_with("pc-q35-") && q35.hotpluggable_cpus && q35.cpu_max >= 255);
    assert_eq!(machine.architecture().await.unwrap(), "x86_64");
    assert!(!machine.has_kvm().await.unwrap());
    assert!(machine.sev().await.is_err());
    assert!(machine.commands().await.unwrap().iter().any(|command| command == "query-stats"));
}

#[tokio::test]
async fn statistics_are_there_even_without_kvm() {
    let (_process, machine) = start(&[]).await;
    machine.stats("vm").await.unwrap();
    machine.stats("vcpu").await.unwrap();
    assert_eq!(machine.dirty_rate().await.unwrap().status, "unstarted");
    machine.resume().await.unwrap();
    machine.measure_dirty_rate(1).await.unwrap();
}
