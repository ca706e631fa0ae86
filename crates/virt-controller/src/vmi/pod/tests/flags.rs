//! What the controller was started with, as pods have it.

use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::json;

use super::super::{Surroundings, launcher};

/// How long the launcher waits, and the group of its volumes.
fn of(around: &Surroundings<'_>) -> (u64, i64) {
    let vmi = json!({ "metadata": { "name": "a", "uid": "u" }, "spec": { "domain": { "devices": {} } } });
    let vmi: VirtualMachineInstance = serde_json::from_value(vmi).unwrap();
    let spec = launcher(&vmi, around).unwrap().spec.unwrap();
    let command = spec.containers[0].command.clone().unwrap();
    let timeout = command.iter().skip_while(|word| *word != "--qemu-timeout").nth(1).unwrap();
    let group = spec.security_context.unwrap().fs_group.unwrap();
    (timeout.trim_end_matches('s').parse().unwrap(), group)
}

#[test]
fn launchers_wait_and_share_files_as_they_are_told() {
    let config = ClusterConfig::default();
    let usual = Surroundings::new(&config, "image");
    let (timeout, group) = of(&usual);
    assert!((240..360).contains(&timeout), "{timeout}");
    assert_eq!(group, 107);
    assert_eq!(of(&Surroundings { timeout: 60, group: 5, ..usual }), (timeout - 180, 5));
}
