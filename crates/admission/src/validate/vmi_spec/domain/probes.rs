//! Probes: one way to ask each, and a pod network for those that ask over the network.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::probes::Probe;

use crate::{Path, Problems};

/// Everything that is wrong.
pub(super) fn check(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let reachable = spec.networks.iter().flatten().any(|network| network.pod.is_some());
    for (name, probe) in [("readinessProbe", &spec.readiness_probe), ("livenessProbe", &spec.liveness_probe)]
    {
        if let Some(probe) = probe {
            check_probe(&path.at(name), probe, reachable, problems);
        }
    }
}

fn check_probe(field: &Path<'_>, probe: &Probe, reachable: bool, problems: &mut Problems) {
    let ways = [
        probe.http_get.is_some(),
        probe.tcp_socket.is_some(),
        probe.exec.is_some(),
        probe.guest_agent_ping.is_some(),
    ];
    match ways.into_iter().filter(|set| *set).count() {
        0 => problems.required(field, "say how to probe: set httpGet, tcpSocket, exec or guestAgentPing"),
        1 => {}
        _ => problems.invalid(field, "set only one of httpGet, tcpSocket, exec and guestAgentPing"),
    }
    if reachable {
        return;
    }
    for (name, set) in [("httpGet", probe.http_get.is_some()), ("tcpSocket", probe.tcp_socket.is_some())] {
        if set {
            let message = "the guest is probed over the pod network, which it is not attached to";
            problems.invalid(&field.at(name), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{reasons, run};
    use crate::Reason;
    use crate::testing::World;

    #[test]
    fn a_probe_asks_in_one_way_that_reaches_the_guest() {
        let http = json!({ "httpGet": { "port": 80 } });
        let tcp = json!({ "tcpSocket": { "port": 80 } });
        let exec = json!({ "exec": { "command": ["true"] } });
        let ping = json!({ "guestAgentPing": {} });
        let two = json!({ "guestAgentPing": {}, "exec": { "command": ["true"] } });
        run(
            &World::default(),
            &[
                ("http", json!({ "readinessProbe": http }), &[]),
                ("tcp", json!({ "livenessProbe": tcp }), &[]),
                ("exec", json!({ "livenessProbe": exec }), &[]),
                ("ping", json!({ "livenessProbe": ping }), &[]),
                ("nothing", json!({ "readinessProbe": {} }), &["spec.readinessProbe"]),
                ("two ways", json!({ "livenessProbe": two }), &["spec.livenessProbe"]),
                (
                    "no pod network",
                    json!({ "networks": null, "readinessProbe": http, "livenessProbe": tcp }),
                    &["spec.readinessProbe.httpGet", "spec.livenessProbe.tcpSocket"],
                ),
                (
                    "other network",
                    json!({ "networks": [{ "name": "a", "multus": { "networkName": "a" } }], "livenessProbe": http }),
                    &["spec.livenessProbe.httpGet"],
                ),
                ("agent needs no network", json!({ "networks": null, "livenessProbe": ping }), &[]),
            ],
        );
        assert_eq!(reasons(&World::default(), &json!({ "readinessProbe": {} })), [Reason::Required]);
        assert_eq!(reasons(&World::default(), &json!({ "livenessProbe": two })), [Reason::Invalid]);
    }
}
