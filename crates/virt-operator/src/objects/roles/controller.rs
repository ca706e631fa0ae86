//! virt-controller: makes instances, pods, claims and data volumes, and looks after nodes that went silent.

use kubevirt_api::names::{accounts, groups};

use super::Rights;
use super::rules::{OWN, READ, Rule};

pub(super) fn rights() -> Rights {
    Rights { account: accounts::CONTROLLER, global: [ours(), clusters()].concat(), local: local() }
}

/// On kinds of KubeVirt.
fn ours() -> Vec<Rule> {
    const OWNERS: &[&str] =
        &["virtualmachines", "virtualmachineinstances", "virtualmachineinstancereplicasets"];
    vec![
        Rule::new(groups::KUBEVIRT, &["kubevirts", "virtualmachineinstancemigrations"], READ),
        Rule::new(groups::KUBEVIRT, OWNERS, OWN),
        Rule::new(
            groups::KUBEVIRT,
            &["virtualmachines/status", "virtualmachineinstancereplicasets/status"],
            &["patch"],
        ),
        // Who makes an object that blocks the end of its owner must be allowed to.
        Rule::new(
            groups::KUBEVIRT,
            &[
                "virtualmachines/finalizers",
                "virtualmachineinstances/finalizers",
                "virtualmachineinstancereplicasets/finalizers",
            ],
            &["update"],
        ),
        Rule::new(groups::POOL, &["virtualmachinepools"], &["get", "list", "watch", "patch"]),
        Rule::new(groups::POOL, &["virtualmachinepools/status"], &["patch"]),
        Rule::new(groups::POOL, &["virtualmachinepools/finalizers"], &["update"]),
        Rule::new(
            groups::INSTANCETYPE,
            &[
                "virtualmachineinstancetypes",
                "virtualmachineclusterinstancetypes",
                "virtualmachinepreferences",
                "virtualmachineclusterpreferences",
            ],
            READ,
        ),
        // When they were taken is told as a metric.
        Rule::new(groups::SNAPSHOT, &["virtualmachinesnapshots"], READ),
    ]
}

/// On kinds of Kubernetes and of others.
fn clusters() -> Vec<Rule> {
    vec![
        Rule::new("", &["pods"], OWN),
        Rule::new("", &["pods/status"], &["patch"]),
        Rule::new("", &["pods/finalizers"], &["update"]),
        Rule::new("", &["persistentvolumeclaims"], OWN),
        Rule::new("", &["nodes"], &["get", "list", "watch", "patch"]),
        Rule::new("", &["namespaces", "resourcequotas"], READ),
        Rule::new("", &["events"], &["create", "patch"]),
        Rule::new("apps", &["controllerrevisions"], OWN),
        Rule::new("storage.k8s.io", &["storageclasses"], READ),
        // Whether the owner of a machine may clone what it clones.
        Rule::new("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
        Rule::new(groups::CDI, &["datavolumes"], OWN),
        Rule::new(groups::CDI, &["cdiconfigs", "datasources", "storageprofiles"], READ),
        Rule::new(groups::NETWORK_ATTACHMENT, &["network-attachment-definitions"], READ),
    ]
}

fn local() -> Vec<Rule> {
    vec![
        Rule::new("coordination.k8s.io", &["leases"], &["get", "create", "update", "patch"]),
        // Which labels of machines are told as metrics.
        Rule::new("", &["configmaps"], READ).named(&["kubevirt-vm-labels-config"]),
    ]
}
