//! The command line of virt-controller.

use clap::Parser;
use kubevirt_component::Common;
use kubevirt_component::flags::Election;

use crate::context::Settings;

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
    /// Image of the pods that serve exports
    #[arg(long, value_name = "IMAGE", default_value = "virt-exportserver")]
    pub exporter_image: String,
    /// Seconds that a launcher waits for QEMU
    #[arg(long, value_name = "SECONDS", default_value_t = 240)]
    pub launcher_qemu_timeout: i64,
    /// Secret to pull the images of launchers and container disks with
    #[arg(long, value_name = "NAME", default_value = "")]
    pub image_pull_secret: String,
    /// Folder that handlers and launchers share
    #[arg(long, value_name = "PATH", default_value = "/var/run/kubevirt")]
    pub kubevirt_share_dir: String,
    /// Folder of disks that live as long as their instance
    #[arg(long, value_name = "PATH", default_value = "/var/run/kubevirt-ephemeral-disks")]
    pub ephemeral_disk_dir: String,
    /// Folder of container disks
    #[arg(long, value_name = "PATH", default_value = "/var/run/kubevirt/container-disks")]
    pub container_disk_dir: String,
    /// Folder of disks that are plugged into running instances
    #[arg(long, value_name = "PATH", default_value = "/var/run/kubevirt/hotplug-disks")]
    pub hotplug_disk_dir: String,
    /// Group that files of launchers belong to
    #[arg(long, value_name = "ID", default_value_t = 107)]
    pub launcher_subgid: i64,
    /// Annotations that follow from an instance to its pod; a last * stands for many
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub additional_launcher_annotations_sync: Vec<String>,
    /// Labels that follow from an instance to its pod; a last * stands for many
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub additional_launcher_labels_sync: Vec<String>,
    #[command(flatten)]
    pub threads: Threads,
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
    /// Migrations
    #[arg(long = "migration-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub migrations: usize,
    /// Instances that must leave their node
    #[arg(long = "evacuation-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub evacuations: usize,
    /// Disruption budgets
    #[arg(long = "disruption-budget-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub disruption_budgets: usize,
    /// Snapshots
    #[arg(long = "snapshot-controller-threads", value_name = "COUNT", default_value_t = 6)]
    pub snapshots: usize,
    /// Restores
    #[arg(long = "restore-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub restores: usize,
    /// Exports
    #[arg(long = "export-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub exports: usize,
    /// Clones
    #[arg(long = "clone-controller-threads", value_name = "COUNT", default_value_t = 3)]
    pub clones: usize,
    /// Backups
    #[arg(long = "backup-controller-threads", value_name = "COUNT", default_value_t = 3)]
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
            share_dir: self.kubevirt_share_dir.clone(),
            ephemeral_disk_dir: self.ephemeral_disk_dir.clone(),
            container_disk_dir: self.container_disk_dir.clone(),
            hotplug_disk_dir: self.hotplug_disk_dir.clone(),
            mirrored_annotations: self.additional_launcher_annotations_sync.clone(),
            mirrored_labels: self.additional_launcher_labels_sync.clone(),
            namespace: self.common.namespace(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_of_pods() {
        let line = "virt-controller --launcher-image registry:5000/virt-launcher:v1 --port 8443 -v 2 \
                    --vmi-controller-threads 20 --additional-launcher-labels-sync a,b/*";
        let arguments = Arguments::try_parse_from(line.split_whitespace()).unwrap();
        assert_eq!(arguments.settings().launcher_image, "registry:5000/virt-launcher:v1");
        assert_eq!(arguments.settings().mirrored_labels, ["a", "b/*"]);
        assert_eq!(arguments.threads.vmis, 20);
    }
}
