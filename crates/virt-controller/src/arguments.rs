//! The command line of virt-controller.

use std::time::Duration;

use clap::{Parser, value_parser};
use kubevirt_component::Common;
use kubevirt_component::flags::{Election, time};
use kubevirt_domain::Layout;

use crate::context::Settings;
use crate::vmi::pod;

/// Makes instances of machines, and pods of instances.
#[derive(Parser, Debug)]
#[command(name = "virt-controller")]
pub struct Arguments {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    pub election: Election,
    /// Image of the pods that run instances
    #[arg(long, value_name = "IMAGE", default_value = "virt-launcher")]
    pub launcher_image: String,
    /// Image of the pods that serve exports; has no effect yet
    #[arg(long, value_name = "IMAGE", default_value = "virt-exportserver")]
    pub exporter_image: String,
    /// Seconds that a launcher waits at least for its machine to be asked for
    #[arg(long, value_name = "SECONDS", default_value_t = pod::TIMEOUT)]
    pub launcher_qemu_timeout: u64,
    /// Secret to pull the images of launchers and container disks with
    #[arg(long, value_name = "NAME", default_value = "")]
    pub image_pull_secret: String,
    /// Group that volumes of launchers belong to
    #[arg(long, value_name = "ID", default_value_t = pod::USER, value_parser = value_parser!(i64).range(0..))]
    pub launcher_subgid: i64,
    /// How often nodes are labelled with the frequencies of time stamp counters
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = period)]
    pub node_topology_update_period: Duration,
    /// How often snapshots are looked at although nothing changed; has no effect yet
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = period)]
    pub snapshot_controller_resync_period: Duration,
    /// Annotations that follow from an instance to its pod; a last * stands for many
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub additional_launcher_annotations_sync: Vec<String>,
    /// Labels that follow from an instance to its pod; a last * stands for many
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub additional_launcher_labels_sync: Vec<String>,
    #[command(flatten)]
    pub folders: Folders,
    #[command(flatten)]
    pub threads: Threads,
}

/// Folders in the pods of launchers. Launchers, handlers and these pods agree on where they are, so that no other place
/// would do.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Folders of launchers, which are where they are")]
pub struct Folders {
    /// What handlers and launchers share
    #[arg(long = "kubevirt-share-dir", value_name = "PATH", default_value_t = pod::SHARED.to_owned())]
    pub share: String,
    /// Disks that live as long as their instance
    #[arg(long = "ephemeral-disk-dir", value_name = "PATH", default_value_t = Layout::default().ephemeral)]
    pub ephemeral_disks: String,
    /// Container disks
    #[arg(long = "container-disk-dir", value_name = "PATH", default_value_t = Layout::default().container_disks)]
    pub container_disks: String,
    /// Disks that are plugged into running instances
    #[arg(long = "hotplug-disk-dir", value_name = "PATH", default_value_t = Layout::default().hotplug_disks)]
    pub hotplug_disks: String,
}

/// A folder cannot be where a flag has it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{flag} {given}: launchers have this at {place}, and nowhere else: leave the flag out")]
pub struct Elsewhere {
    flag: &'static str,
    given: String,
    place: String,
}

impl Folders {
    /// Whether they are where launchers have them.
    pub fn check(&self) -> Result<(), Elsewhere> {
        let layout = Layout::default();
        let folders = [
            ("--kubevirt-share-dir", &self.share, pod::SHARED.to_owned()),
            ("--ephemeral-disk-dir", &self.ephemeral_disks, layout.ephemeral),
            ("--container-disk-dir", &self.container_disks, layout.container_disks),
            ("--hotplug-disk-dir", &self.hotplug_disks, layout.hotplug_disks),
        ];
        let moved = folders.into_iter().find(|(_, given, place)| given.trim_end_matches('/') != place);
        match moved {
            Some((flag, given, place)) => Err(Elsewhere { flag, given: given.clone(), place }),
            None => Ok(()),
        }
    }
}

/// Reads how often something is done.
fn period(text: &str) -> Result<Duration, String> {
    let period = time(text)?;
    if period.is_zero() { Err("must be longer than nothing".to_owned()) } else { Ok(period) }
}

/// How many objects of a kind are worked on at a time.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Work at a time")]
pub struct Threads {
    /// Nodes
    #[arg(long = "node-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub nodes: usize,
    /// Instances
    #[arg(long = "vmi-controller-threads", value_name = "COUNT", default_value_t = 10)]
    pub vmis: usize,
    /// Replica sets
    #[arg(long = "rs-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub replica_sets: usize,
    /// Pools
    #[arg(long = "pool-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub pools: usize,
    /// Virtual machines
    #[arg(long = "vm-controller-threads", value_name = "COUNT", default_value_t = 10)]
    pub vms: usize,
    /// Migrations; has no effect yet
    #[arg(long = "migration-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub migrations: usize,
    /// Instances that must leave their node; has no effect yet
    #[arg(long = "evacuation-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub evacuations: usize,
    /// Disruption budgets; has no effect yet
    #[arg(long = "disruption-budget-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub disruption_budgets: usize,
    /// Snapshots; has no effect yet
    #[arg(long = "snapshot-controller-threads", value_name = "COUNT", default_value_t = 6)]
    pub snapshots: usize,
    /// Restores; has no effect yet
    #[arg(long = "restore-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub restores: usize,
    /// Exports; has no effect yet
    #[arg(long = "export-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub exports: usize,
    /// Clones; has no effect yet
    #[arg(long = "clone-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub clones: usize,
    /// Backups; has no effect yet
    #[arg(long = "backup-controller-threads", value_name = "COUNT", default_value_t = 6)]
    pub backups: usize,
}

impl Arguments {
    /// What controllers need to know of it.
    pub fn settings(&self) -> Settings {
        Settings {
            launcher_image: self.launcher_image.clone(),
            exporter_image: self.exporter_image.clone(),
            image_pull_secret: self.image_pull_secret.clone(),
            launcher_qemu_timeout: self.launcher_qemu_timeout,
            launcher_subgid: self.launcher_subgid,
            node_topology_update_period: self.node_topology_update_period,
            mirrored_annotations: self.additional_launcher_annotations_sync.clone(),
            mirrored_labels: self.additional_launcher_labels_sync.clone(),
            namespace: self.common.namespace(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(format!("virt-controller {line}").split_whitespace())
    }

    #[test]
    fn the_command_line_of_pods() {
        let line = "--launcher-image registry:5000/virt-launcher:v1 --port 8443 -v 2 \
                    --vmi-controller-threads 20 --additional-launcher-labels-sync a,b/*";
        let arguments = parse(line).unwrap();
        assert_eq!(arguments.settings().launcher_image, "registry:5000/virt-launcher:v1");
        assert_eq!(arguments.settings().mirrored_labels, ["a", "b/*"]);
        assert_eq!(arguments.threads.vmis, 20);
        assert_eq!(arguments.folders.check(), Ok(()));
    }

    #[test]
    fn controllers_are_set_by_flags_and_otherwise_as_usual() {
        let usual = parse("").unwrap().settings();
        let unset = Settings {
            launcher_image: usual.launcher_image.clone(),
            exporter_image: usual.exporter_image.clone(),
            namespace: usual.namespace.clone(),
            ..Settings::default()
        };
        assert_eq!(usual, unset);
        let line = "--launcher-qemu-timeout 60 --launcher-subgid 5 --node-topology-update-period 1m";
        let set = parse(line).unwrap().settings();
        assert_eq!((set.launcher_qemu_timeout, set.launcher_subgid), (60, 5));
        assert_eq!(set.node_topology_update_period, Duration::from_secs(60));
    }

    /// Every flag of KubeVirt's virt-controller.
    #[test]
    fn a_line_of_kubevirt_is_taken() {
        let line = "--listen 0.0.0.0 --port 8182 --kubeconfig a --master b --v 3 \
            --leader-elect-lease-duration 15s --leader-elect-renew-deadline 10s --leader-elect-retry-period 2s \
            --leader-elect-resource-lock leases --launcher-image a --exporter-image b --launcher-qemu-timeout 240 \
            --image-pull-secret c --kubevirt-share-dir /var/run/kubevirt \
            --ephemeral-disk-dir /var/run/kubevirt-ephemeral-disks \
            --container-disk-dir /var/run/kubevirt/container-disks \
            --hotplug-disk-dir /var/run/kubevirt/hotplug-disks/ --node-controller-threads 3 \
            --vmi-controller-threads 10 --rs-controller-threads 3 --pool-controller-threads 3 \
            --vm-controller-threads 3 --migration-controller-threads 3 --evacuation-controller-threads 3 \
            --disruption-budget-controller-threads 3 --launcher-subgid 107 --snapshot-controller-threads 6 \
            --restore-controller-threads 3 --export-controller-threads 3 --snapshot-controller-resync-period 5m \
            --node-topology-update-period 30s --prom-cert-file d --prom-key-file e --clone-controller-threads 3 \
            --additional-launcher-annotations-sync f --additional-launcher-labels-sync g \
            --backup-controller-threads 6";
        assert_eq!(parse(line).unwrap().folders.check(), Ok(()));
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for wrong in
            ["--launcher-subgid=-1", "--launcher-qemu-timeout=-1", "--node-topology-update-period 0s"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for flag in ["kubevirt-share", "ephemeral-disk", "container-disk", "hotplug-disk"] {
            let error = parse(&format!("--{flag}-dir /elsewhere")).unwrap().folders.check().unwrap_err();
            let start = format!("--{flag}-dir /elsewhere: launchers have this at /var/run/kubevirt");
            assert!(error.to_string().starts_with(&start), "{error}");
        }
    }
}
