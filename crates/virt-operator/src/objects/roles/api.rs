//! virt-api: reads what admission reads, marks an instance that is to leave its node, and does what users ask for
//! through subresources.

use kubevirt_api::names::components::secrets;
use kubevirt_api::names::external::kubernetes::AGGREGATOR_AUTHENTICATION;
use kubevirt_api::names::{accounts, groups};

use super::Rights;
use super::rules::{READ, Rule};

pub(super) fn rights() -> Rights {
    Rights {
        account: accounts::API,
        global: vec![
            Rule::new(
                groups::KUBEVIRT,
                &[
                    "kubevirts",
                    "virtualmachines",
                    "virtualmachineinstances",
                    "virtualmachineinstancemigrations",
                    "virtualmachineinstancepresets",
                    "virtualmachineinstancereplicasets",
                ],
                READ,
            ),
            // An eviction is written down on the instance; users start machines and plug volumes.
            Rule::new(
                groups::KUBEVIRT,
                &["virtualmachines", "virtualmachines/status", "virtualmachineinstances"],
                &["patch"],
            ),
            Rule::new(groups::KUBEVIRT, &["virtualmachineinstancemigrations"], &["create"]),
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
            Rule::new(
                groups::SNAPSHOT,
                &["virtualmachinesnapshots", "virtualmachinesnapshotcontents", "virtualmachinerestores"],
                READ,
            ),
            Rule::new(groups::BACKUP, &["virtualmachinebackups", "virtualmachinebackuptrackers"], READ),
            Rule::new(groups::CDI, &["datavolumes", "datasources"], READ),
            // How much of a file system is not for files.
            Rule::new(groups::CDI, &["cdiconfigs"], &["get"]),
            // Whether a node is drained.
            Rule::new("", &["nodes"], &["get"]),
            Rule::new(groups::VOLUME_SNAPSHOT, &["volumesnapshots"], READ),
            Rule::new("", &["persistentvolumeclaims", "pods", "namespaces"], READ),
            // By what the aggregator is known, which is in a namespace of the cluster's own.
            Rule::new("", &["configmaps"], READ).named(&[AGGREGATOR_AUTHENTICATION]),
            Rule::new("apps", &["controllerrevisions"], READ),
            Rule::new("apiextensions.k8s.io", &["customresourcedefinitions"], READ),
        ],
        local: vec![Rule::new("", &["configmaps"], READ).named(&[secrets::CA])],
    }
}
