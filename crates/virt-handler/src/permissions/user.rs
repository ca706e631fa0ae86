//! The user that a launcher runs as, to whom all is given that it uses.

use kubevirt_api::names::annotations;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_network::LAUNCHER_USER;

const ROOT: u32 = 0;

/// The user, and group, that a machine's launcher runs as: root if the cluster wanted it so when the machine was made.
/// Who makes the pod goes by the same.
pub(crate) fn user(vmi: &VirtualMachineInstance) -> u32 {
    let wanted = vmi.status.as_ref().and_then(|status| status.runtime_user);
    let annotations = vmi.metadata.annotations.as_ref();
    let never = annotations.is_some_and(|all| all.contains_key(annotations::DEPRECATED_NON_ROOT));
    if wanted == Some(i64::from(ROOT)) && !never { ROOT } else { LAUNCHER_USER }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn root_is_the_exception() {
        let none = json!({});
        let old = json!({"kubevirt.io/nonroot": "true"});
        for (annotations, status, expected) in [
            (&none, json!({}), LAUNCHER_USER),
            (&none, json!({"runtimeUser": 107}), LAUNCHER_USER),
            (&none, json!({"runtimeUser": 1000}), LAUNCHER_USER),
            (&none, json!({"runtimeUser": 0}), ROOT),
            (&old, json!({"runtimeUser": 0}), LAUNCHER_USER),
        ] {
            let vmi = json!({
                "metadata": {"name": "web", "annotations": annotations},
                "spec": {"domain": {"devices": {}}},
                "status": status,
            });
            assert_eq!(user(&serde_json::from_value(vmi).unwrap()), expected, "{annotations} {status}");
        }
    }
}
