//! What a scheduler's message means for a virtual machine.

use std::collections::BTreeMap;

use kubevirt_api::names::labels;

/// One reason why nodes do not take a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hint {
    /// What it is, as the end of a sentence.
    pub what: String,
    /// What to do.
    pub next: String,
}

fn hint(what: impl Into<String>, next: impl Into<String>) -> Hint {
    Hint { what: what.into(), next: next.into() }
}

/// The reasons that a message such as `0/3 nodes are available: 3 Insufficient memory.` gives, those first that are
/// about virtual machines.
pub fn hints(message: &str, selector: &BTreeMap<String, String>) -> Vec<Hint> {
    let mut found = Vec::new();
    let lacks = |what: &str| message.contains(&format!("Insufficient {what}"));
    if message.contains("didn't match Pod's node affinity/selector") {
        found.extend(unmatched(selector));
    }
    if lacks("devices.kubevirt.io/kvm") {
        found.push(hint(
            "no node has hardware virtualization to give",
            "See whether nodes have /dev/kvm (`kubectl describe node`), or allow software emulation: set \
             spec.configuration.developerConfiguration.useEmulation of the KubeVirt resource.",
        ));
    }
    for device in insufficient(message).filter(|name| name.contains('/') && !name.ends_with("/kvm")) {
        found.push(hint(
            format!("no node has {device} to give"),
            "See which nodes offer the device (`kubectl describe node`), and what uses it.",
        ));
    }
    if insufficient(message).any(|name| name.starts_with("hugepages-")) {
        found.push(hint(
            "no node has enough huge pages",
            "Reserve huge pages on nodes, or leave spec.domain.memory.hugepages away.",
        ));
    }
    if lacks("memory") {
        found.push(hint(
            "no node has enough free memory",
            "Ask for less memory, stop other machines, or add a node.",
        ));
    }
    if lacks("cpu") {
        found.push(hint(
            "no node has enough free CPU",
            "Ask for fewer CPUs, stop other machines, or add a node.",
        ));
    }
    if let Some(taint) = between(message, "untolerated taint", "}") {
        found.push(hint(
            format!(
                "nodes have a taint that it does not tolerate: {}",
                taint.trim_start_matches([' ', '{', '('])
            ),
            "Add a toleration to the machine's template, or take the taint away.",
        ));
    }
    if message.contains("volume node affinity conflict") {
        found.push(hint(
            "its volume is on a node that does not take it",
            "Free that node, or move the volume: `kubectl get pv -o wide` tells where it is.",
        ));
    }
    if message.contains("persistentvolumeclaim") && message.contains("not found") {
        found.push(hint(
            "a PersistentVolumeClaim of it does not exist",
            "Create it: the machine starts by itself then.",
        ));
    }
    if message.contains("unbound immediate PersistentVolumeClaims")
        || message.contains("didn't find available persistent volumes to bind")
    {
        found.push(hint(
            "a PersistentVolumeClaim of it has no volume",
            "See what the claim waits for: kubectl describe pvc",
        ));
    }
    if message.contains("were unschedulable") {
        found.push(hint("nodes are cordoned", "Let a node take pods again: kubectl uncordon NODE"));
    }
    if message.contains("anti-affinity") || message.contains("pod affinity") {
        found.push(hint(
            "its (anti-)affinity to other pods keeps it off",
            "Loosen the affinity in the machine's template.",
        ));
    }
    if message.contains("Too many pods") {
        found.push(hint("nodes have as many pods as they take", "Add a node, or stop other pods."));
    }
    found
}

/// Which of the labels that the pod asks for may be the one that no node has.
fn unmatched(selector: &BTreeMap<String, String>) -> Vec<Hint> {
    let mut found = Vec::new();
    let list = |prefix: &str| {
        let names = selector.keys().filter_map(|key| key.strip_prefix(prefix)).map(str::to_owned);
        Some(names.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
    };
    if let Some(model) = list(labels::CPU_MODEL_PREFIX) {
        found.push(hint(
            format!("no free node offers the CPU model {model}"),
            format!(
                "See which models nodes offer (`kubectl get nodes --show-labels | tr , '\\n' | grep {}`), and name one in \
                 spec.domain.cpu.model, or host-model.",
                labels::CPU_MODEL_PREFIX
            ),
        ));
    }
    if let Some(features) = list(labels::CPU_FEATURE_PREFIX) {
        found.push(hint(
            format!("no free node offers the CPU feature {features}"),
            "Take the feature away from spec.domain.cpu.features, or set its policy to optional.",
        ));
    }
    if let Some(model) = list(labels::HOST_MODEL_CPU_PREFIX) {
        found.push(hint(
            format!("no free node has the CPU that it began with, {model}"),
            "Restart the machine where a node like its first is missing.",
        ));
    }
    let known = [labels::CPU_MODEL_PREFIX, labels::CPU_FEATURE_PREFIX, labels::HOST_MODEL_CPU_PREFIX];
    let own: Vec<String> = selector
        .iter()
        .filter(|(key, _)| {
            !known.iter().any(|prefix| key.starts_with(prefix)) && key.as_str() != labels::NODE_SCHEDULABLE
        })
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    if !own.is_empty() && found.is_empty() {
        found.push(hint(
            format!("no free node has the labels {}", own.join(", ")),
            "Correct the nodeSelector or affinity of the machine's template, or label a node.",
        ));
    }
    if selector.contains_key(labels::NODE_SCHEDULABLE) && found.is_empty() {
        found.push(hint(
            "no node is fit for virtual machines",
            format!(
                "See whether a virt-handler runs on each node: kubectl get pods -A -l {}=virt-handler",
                labels::APP
            ),
        ));
    }
    if found.is_empty() {
        found.push(hint(
            "no node matches its affinity",
            "Correct the nodeSelector or affinity of the machine's template, or label a node.",
        ));
    }
    found
}

/// The resources that a message says there is not enough of.
fn insufficient(message: &str) -> impl Iterator<Item = &str> {
    message
        .split("Insufficient ")
        .skip(1)
        .filter_map(|rest| rest.split([',', ' ']).next())
        .map(|name| name.trim_end_matches('.'))
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end).map_or(rest, |(inside, _)| inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_schedulers_are_understood() {
        let model = [(format!("{}Skylake", labels::CPU_MODEL_PREFIX), "true")];
        let model: &[(String, &str)] = &model;
        let schedulable = [(labels::NODE_SCHEDULABLE.to_owned(), "true")];
        let zone = [(labels::NODE_SCHEDULABLE.to_owned(), "true"), ("zone".to_owned(), "a")];
        let affinity = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.";
        type Case<'a> = (&'a str, &'a [(String, &'a str)], &'a [&'a str]);
        let cases: [Case<'_>; 14] = [
            ("0/3 nodes are available: 3 Insufficient memory.", &[], &["free memory"]),
            (
                "0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient memory.",
                &[],
                &["free memory", "free CPU"],
            ),
            (
                "0/1 nodes are available: 1 Insufficient devices.kubevirt.io/kvm.",
                &[],
                &["hardware virtualization"],
            ),
            ("0/1 nodes are available: 1 Insufficient nvidia.com/T4.", &[], &["nvidia.com/T4 to give"]),
            ("0/1 nodes are available: 1 Insufficient hugepages-2Mi.", &[], &["huge pages"]),
            (
                "0/2 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 1 node(s) were unschedulable.",
                &[],
                &["control-plane", "cordoned"],
            ),
            (affinity, model, &["CPU model Skylake"]),
            (affinity, &schedulable, &["no node is fit"]),
            (affinity, &zone, &["zone=a"]),
            (affinity, &[], &["no node matches its affinity"]),
            (
                "0/1 nodes are available: 1 node(s) had volume node affinity conflict.",
                &[],
                &["its volume is on a node"],
            ),
            (
                "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
                &[],
                &["has no volume"],
            ),
            ("0/1 nodes are available: 1 Too many pods.", &[], &["as many pods"]),
            ("something new", &[], &[]),
        ];
        for (message, selector, expected) in cases {
            let selector = selector.iter().map(|(key, value)| (key.clone(), (*value).to_owned())).collect();
            let found = hints(message, &selector);
            assert_eq!(found.len(), expected.len(), "{message}: {found:?}");
            for (hint, expected) in found.iter().zip(expected) {
                assert!(hint.what.contains(expected), "{message}: {hint:?}");
            }
        }
    }
}
