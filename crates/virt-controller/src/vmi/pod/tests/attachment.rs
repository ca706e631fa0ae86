//! Pods that hold plugged volumes.

use k8s_openapi::api::core::v1::Pod;
use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};

use super::super::{Attachment, Claim, NoPod, Surroundings, attachment};
use super::lines;

fn launcher() -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": "virt-launcher-a-x", "namespace": "default", "uid": "pod-uid" },
        "spec": {
            "nodeName": "node1",
            "containers": [],
            "tolerations": [
                { "key": "mine", "operator": "Exists" },
                { "key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule" },
            ],
        },
    }))
    .unwrap()
}

fn vmi(context: Option<&str>) -> VirtualMachineInstance {
    let volume = |name: &str| json!({ "name": name, "persistentVolumeClaim": { "claimName": format!("{name}-claim"), "hotpluggable": true } });
    let phase =
        |name: &str, phase: &str| json!({ "name": name, "target": "", "phase": phase, "hotplugVolume": {} });
    serde_json::from_value(json!({
        "metadata": { "name": "a", "namespace": "default", "uid": "u" },
        "spec": { "domain": { "devices": {} }, "volumes": [volume("file"), volume("block"), volume("there")] },
        "status": {
            "selinuxContext": context,
            "volumeStatus": [phase("file", "Bound"), phase("there", "Ready")],
        },
    }))
    .unwrap()
}

fn made(vmi: &VirtualMachineInstance) -> Result<Pod, NoPod> {
    let config = ClusterConfig::default();
    let mut around = Surroundings::new(&config, "image");
    for (name, block) in [("file", false), ("block", true), ("there", false)] {
        around.claims.insert(format!("{name}-claim"), Claim { uid: format!("{name}-uid"), block });
    }
    let held: Vec<_> = vmi.spec.volumes.iter().flatten().filter_map(Attachment::of).collect();
    attachment(&launcher(), vmi, &held, &around)
}

#[test]
fn it_holds_what_is_not_there_yet() {
    let pod = serde_json::to_value(made(&vmi(Some("none"))).unwrap()).unwrap();
    let whose = json!({ "kubevirt.io/owner-vmi-name": "a", "kubevirt.io/owner-vmi-uid": "u" });
    assert_eq!(pod["metadata"]["annotations"], whose);
    let container = &pod["spec"]["containers"][0];
    let names = |list: &Value, field: &str| -> Vec<String> {
        list.as_array().unwrap().iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&container["volumeMounts"], "mountPath"), ["/path", "/file"]);
    assert_eq!(container["volumeMounts"][0]["mountPropagation"], "HostToContainer");
    assert_eq!(names(&container["volumeDevices"], "devicePath"), ["/path/block/block-uid"]);
    assert_eq!(names(&pod["spec"]["volumes"], "name"), ["hotplug-disks", "file", "block", "there"]);
    assert_eq!(container["command"], json!(["/usr/bin/container-disk", "--copy-path", "/path/hp"]));
}

#[test]
fn it_stays_on_the_machines_node_whatever_happens_there() {
    let lines = lines::of(&made(&vmi(Some("none"))).unwrap());
    let path =
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]";
    assert!(lines.contains(&format!("{path}.matchExpressions[kubernetes.io/hostname].values: node1")));
    let tolerated: Vec<_> = lines.iter().filter(|line| line.starts_with("spec.tolerations[")).collect();
    assert!(tolerated.iter().any(|line| line.starts_with("spec.tolerations[mine]")));
    assert_eq!(tolerated.iter().filter(|line| line.contains("disk-pressure].key")).count(), 1);
    assert!(lines.contains("metadata.ownerReferences[virt-launcher-a-x].uid: pod-uid"));
    assert!(lines.contains("metadata.labels.kubevirt.io: hotplug-disk"));
}

#[test]
fn it_has_the_machines_selinux_level() {
    let level = |context| {
        let pod = made(&vmi(context))?;
        let container = pod.spec.unwrap().containers.remove(0);
        Ok(container.security_context.unwrap().se_linux_options.unwrap().level.unwrap())
    };
    assert_eq!(level(Some("none")).as_deref(), Ok("s0"));
    assert_eq!(level(Some("system_u:object_r:container_file_t:s0:c1,c2")).as_deref(), Ok("s0:c1,c2"));
    assert_eq!(level(None), Err(NoPod::MissingSelinuxContext));
    assert!(matches!(level(Some("wrong")), Err(NoPod::Unsupported(_))));
}
