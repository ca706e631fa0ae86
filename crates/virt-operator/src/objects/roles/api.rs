//! virt-api: reads what admission reads, and marks an instance that is to leave its node.

use kubevirt_api::names::components::secrets;
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
            // An eviction is written down on the instance.
            Rule::new(groups::KUBEVIRT, &["virtualmachineinstances"], &["patch"]),
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
            Rule::new(groups::VOLUME_SNAPSHOT, &["volumesnapshots"], READ),
            Rule::new("", &["persistentvolumeclaims", "pods", "namespaces"], READ),
            Rule::new("apps", &["controllerrevisions"], READ),
            Rule::new("apiextensions.k8s.io", &["customresourcedefinitions"], READ),
        ],
        local: vec![Rule::new("", &["configmaps"], READ).named(&[secrets::CA])],
    }
}
