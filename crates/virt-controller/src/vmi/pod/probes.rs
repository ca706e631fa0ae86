//! Probes of the guest, as the kubelet can carry them out on the pod.

use k8s_openapi::api::core::v1::{ExecAction, Probe as PodProbe};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::probes::Probe;

/// Runs commands in the guest, or asks its agent whether it is there.
const PROGRAM: &str = "virt-probe";

/// Seconds that a machine gets before its guest is asked anything.
const START: i32 = 10;

/// Seconds that the program gets on top of the guest's.
const AROUND: i32 = 1;

/// The probe of the pod for a probe of the guest. HTTP and TCP reach the guest at the pod's address; commands and the
/// guest agent are reached through a program in the pod.
pub(super) fn of(vmi: &VirtualMachineInstance, probe: Option<&Probe>) -> Option<PodProbe> {
    let probe = probe?;
    let or = |value: Option<i32>, usual: i32| value.filter(|value| *value >= 1).unwrap_or(usual);
    let timeout = or(probe.timeout_seconds, 1);
    let through = command(vmi, probe, timeout);
    Some(PodProbe {
        initial_delay_seconds: Some(probe.initial_delay_seconds.unwrap_or(0).saturating_add(START)),
        timeout_seconds: Some(if through.is_some() { timeout.saturating_add(AROUND) } else { timeout }),
        period_seconds: Some(or(probe.period_seconds, 10)),
        success_threshold: Some(or(probe.success_threshold, 1)),
        failure_threshold: Some(or(probe.failure_threshold, 3)),
        exec: through.map(|command| ExecAction { command: Some(command) }).or(probe.exec.clone()),
        http_get: probe.http_get.clone(),
        tcp_socket: probe.tcp_socket.clone(),
        ..PodProbe::default()
    })
}

/// The command that asks the guest; none if there is nothing to ask, or if it is written that way already.
fn command(vmi: &VirtualMachineInstance, probe: &Probe, timeout: i32) -> Option<Vec<String>> {
    let metadata = &vmi.metadata;
    let domain = format!(
        "{}_{}",
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default()
    );
    let timeout = timeout.to_string();
    let mut line: Vec<String> =
        [PROGRAM, "--domainName", &domain, "--timeoutSeconds", &timeout].map(str::to_owned).to_vec();
    if probe.guest_agent_ping.is_some() {
        line.push("--guestAgentPing".to_owned());
        return Some(line);
    }
    let given = probe.exec.as_ref()?.command.as_ref()?;
    let (first, rest) = given.split_first().filter(|(first, _)| *first != PROGRAM)?;
    line.extend(["--command".to_owned(), first.clone(), "--".to_owned()]);
    line.extend(rest.iter().cloned());
    Some(line)
}
