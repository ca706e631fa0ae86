//! What an earlier handler did for pods that no record of an instance tells of any more.
//!
//! What is mounted for a pod is taken back when its instance has come to its end, and that is told by the records of
//! [`Domains`]. If one of them is lost, what was written down of the pod itself leads back to its instance.

use kubevirt_component::NamespacedName;

use crate::domains::{Domains, Owner};
use crate::launchers::folders::is_name;
use crate::prepare::{self, Folders, Remembered};

/// Whose pods these are, as far as that has to be found out.
#[derive(Debug, Default, PartialEq, Eq)]
struct Lost {
    /// Instances whose records are lost.
    owners: Vec<Owner>,
    /// Pods that belong to nobody any more.
    pods: Vec<String>,
}

/// Finds instances of which only their pods are remembered.
fn lost(known: &[Owner], remembered: Vec<Remembered>) -> Lost {
    let mut lost = Lost::default();
    for Remembered { pod_uid, namespace, name, vmi_uid } in remembered {
        let all = || known.iter().chain(&lost.owners);
        if all().any(|owner| owner.pod == pod_uid) {
            continue;
        }
        // An instance has one launcher here.
        let taken = all().any(|owner| owner.uid == vmi_uid);
        if taken || name.is_empty() || !is_name(&vmi_uid) {
            lost.pods.push(pod_uid);
        } else {
            lost.owners.push(Owner {
                key: NamespacedName::new(&namespace, &name),
                uid: vmi_uid,
                pod: pod_uid,
            });
        }
    }
    lost
}

/// Makes known again who has something on this node. What was done for pods that are gone, and belong to nobody, is
/// taken back.
pub async fn recall(domains: &Domains, folders: &Folders) {
    let remembered = prepare::remembered(folders).unwrap_or_else(|error| {
        tracing::error!(%error, "what earlier handlers left may stay on this node");
        Vec::new()
    });
    let lost = lost(&domains.all(), remembered);
    for owner in lost.owners {
        let noted = domains.note(&owner);
        tracing::warn!(vmi = %owner.key, pod = owner.pod, ?noted, "the record of an instance was lost");
    }
    for pod in lost.pods {
        if folders.pods.join(&pod).exists() {
            tracing::warn!(pod, "a pod belongs to no instance that is known, and is left as it is");
            continue;
        }
        let taken_back = prepare::after_end(&pod, folders).await;
        tracing::info!(pod, ?taken_back, "a pod is gone, and nobody remembers its instance");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Folder;

    fn owner(uid: &str, pod: &str) -> Owner {
        Owner { key: NamespacedName::new("default", "web"), uid: uid.into(), pod: pod.into() }
    }

    fn remembered(pod: &str, name: &str, uid: &str) -> Remembered {
        let (namespace, name) = ("default".into(), name.into());
        Remembered { pod_uid: pod.into(), namespace, name, vmi_uid: uid.into() }
    }

    #[test]
    fn pods_lead_back_to_their_instances() {
        let one = || remembered("pod1", "web", "1");
        for (what, known, pods, owners, nobodys) in [
            ("all is well", vec![owner("1", "pod1")], vec![one()], vec![], vec![]),
            ("the record is lost", vec![owner("2", "pod2")], vec![one()], vec![owner("1", "pod1")], vec![]),
            ("it has another pod", vec![owner("1", "pod2")], vec![one()], vec![], vec!["pod1"]),
            (
                "two pods of one instance",
                vec![],
                vec![one(), remembered("pod2", "web", "1")],
                vec![owner("1", "pod1")],
                vec!["pod2"],
            ),
            ("nobody is named", vec![], vec![remembered("pod1", "", "")], vec![], vec!["pod1"]),
            ("nothing", vec![owner("1", "pod1")], vec![], vec![], vec![]),
        ] {
            let pods_of_nobody = nobodys.into_iter().map(str::to_owned).collect();
            assert_eq!(lost(&known, pods), Lost { owners, pods: pods_of_nobody }, "{what}");
        }
    }

    #[tokio::test]
    async fn a_record_that_cannot_be_read_is_written_anew() {
        let folder = Folder::new();
        let folders = Folders::new(folder.path().join("pods"), folder.path().join("private"));
        let (records, ledgers) = (folder.path().join("records"), folders.private.join("pods"));
        let write = |path: std::path::PathBuf, text: String| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let ledger = |uid: &str| {
            let mounts = json!([{"volume": "container-disks", "name": "disk_0.img"}]);
            json!({"namespace": "default", "name": "web", "uid": uid, "mounts": mounts}).to_string()
        };
        write(records.join("1"), "{".into());
        write(ledgers.join("pod1.json"), ledger("1"));
        write(ledgers.join("pod2.json"), "{".into());
        write(ledgers.join("pod3.json"), ledger(""));
        write(ledgers.join("pod4.json"), ledger(""));
        std::fs::create_dir_all(folders.pods.join("pod4")).unwrap();
        let domains = Domains::load(&records).unwrap();
        assert_eq!(domains.all(), []);
        for _ in 0..2 {
            recall(&domains, &folders).await;
            assert_eq!(domains.all(), [owner("1", "pod1")]);
        }
        assert_eq!(Domains::load(&records).unwrap().all(), [owner("1", "pod1")]);
        let left = ["pod1", "pod2", "pod3", "pod4"].map(|pod| ledgers.join(format!("{pod}.json")).exists());
        assert_eq!(left, [true, true, false, true], "only what is of nobody is taken back");
    }
}
