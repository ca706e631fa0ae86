//! How often probes ask, and how many answers count.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;

/// Puts the usual numbers where a probe has none, or one below one.
pub fn set(spec: &mut VirtualMachineInstanceSpec) {
    for probe in [&mut spec.liveness_probe, &mut spec.readiness_probe].into_iter().flatten() {
        for (number, usual) in [
            (&mut probe.timeout_seconds, 1),
            (&mut probe.period_seconds, 10),
            (&mut probe.success_threshold, 1),
            (&mut probe.failure_threshold, 3),
        ] {
            if number.is_none_or(|number| number < 1) {
                *number = Some(usual);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::read;

    #[test]
    fn a_probe_has_all_its_numbers() {
        let mut spec: VirtualMachineInstanceSpec = read(json!({
            "domain": { "devices": {} },
            "livenessProbe": { "guestAgentPing": {} },
            "readinessProbe": { "initialDelaySeconds": 5, "timeoutSeconds": 0, "periodSeconds": -1, "successThreshold": 2, "failureThreshold": 4 },
        }));
        set(&mut spec);
        let spec = serde_json::to_value(spec).unwrap();
        assert_eq!(
            spec["livenessProbe"],
            json!({ "guestAgentPing": {}, "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3 })
        );
        assert_eq!(
            spec["readinessProbe"],
            json!({ "initialDelaySeconds": 5, "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 2, "failureThreshold": 4 })
        );
    }
}
