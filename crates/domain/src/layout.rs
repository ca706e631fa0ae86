//! Where files and sockets lie in a launcher's container; the defaults are KubeVirt's.

use serde::{Deserialize, Serialize};

/// Folders of a launcher's container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Layout {
    /// What only this machine's processes use.
    pub private: String,
    /// Overlays, cloud-init and scratch disks.
    pub ephemeral: String,
    /// Mounted container disks and kernels.
    pub container_disks: String,
    /// Mounted images of container disks, where the cluster mounts images itself.
    pub image_volumes: String,
    /// Mounted image of a kernel, where the cluster mounts images itself.
    pub kernel_image: String,
    /// Volumes added while the machine runs.
    pub hotplug_disks: String,
    /// Sockets of the file servers of shared directories.
    pub filesystems: String,
    /// Block devices.
    pub devices: String,
    /// Socket of the host's service for persistent reservations.
    pub reservations: String,
    /// Token and more of the pod's service account.
    pub service_account: String,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            private: "/var/run/kubevirt-private".into(),
            ephemeral: "/var/run/kubevirt-ephemeral-disks".into(),
            container_disks: "/var/run/kubevirt/container-disks".into(),
            image_volumes: "/var/run/kubevirt-image-volume".into(),
            kernel_image: "/var/run/kubevirt-kernel-boot".into(),
            hotplug_disks: "/var/run/kubevirt/hotplug-disks".into(),
            filesystems: "/var/run/kubevirt/virtiofs-containers".into(),
            devices: "/dev".into(),
            reservations: "/var/run/kubevirt/daemons/pr/pr-helper.sock".into(),
            service_account: "/var/run/secrets/kubernetes.io/serviceaccount".into(),
        }
    }
}

/// ISO images that the launcher makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iso {
    /// Keys of a ConfigMap.
    ConfigMap,
    /// Keys of a Secret.
    Secret,
    /// Fields of the VMI.
    DownwardApi,
    /// Windows answer file.
    Sysprep,
}

impl Layout {
    /// A socket or file of one machine, such as `virt-vnc`.
    pub fn machine(&self, uid: &str, name: &str) -> String {
        format!("{}/{uid}/{name}", self.private)
    }

    /// Image of a claim that is a file system.
    pub fn claim_file(&self, volume: &str) -> String {
        format!("{}/vmi-disks/{volume}/disk.img", self.private)
    }

    /// A claim that is a block device.
    pub fn claim_block(&self, volume: &str) -> String {
        format!("{}/{volume}", self.devices)
    }

    /// Image of a host disk, whose folder is mounted as the volume.
    pub fn host_disk(&self, volume: &str, path: &str) -> String {
        let file = path.rsplit('/').next().unwrap_or(path);
        format!("{}/vmi-disks/{volume}/{file}", self.private)
    }

    /// Image or block device of a claim that was added while the machine ran.
    pub fn hotplug(&self, volume: &str, block: bool) -> String {
        let end = if block { "" } else { ".img" };
        format!("{}/{volume}{end}", self.hotplug_disks)
    }

    /// The layer that takes a guest's writes over an image that stays as it is.
    pub fn overlay(&self, volume: &str) -> String {
        format!("{}/disk-data/{volume}/disk.qcow2", self.ephemeral)
    }

    /// Image in a container disk, by the volume's place in the VMI.
    pub fn container_disk(&self, index: usize) -> String {
        format!("{}/disk_{index}.img", self.container_disks)
    }

    /// Kernel or initial RAM disk from a container image.
    pub fn kernel_artifact(&self, path: &str) -> String {
        let file = path.rsplit('/').next().unwrap_or(path);
        format!("{}/kernel-boot/{file}", self.container_disks)
    }

    /// Mounted image of a container disk, by the volume's place in the VMI.
    pub fn image_volume(&self, index: usize) -> String {
        format!("{}/disk_{index}", self.image_volumes)
    }

    /// Scratch disk.
    pub fn empty_disk(&self, volume: &str) -> String {
        format!("{}/empty-disks/{volume}.qcow2", self.ephemeral)
    }

    /// Cloud-init seed, as NoCloud or config drive.
    pub fn cloud_init(&self, namespace: &str, name: &str, config_drive: bool) -> String {
        let file = if config_drive { "configdrive.iso" } else { "noCloud.iso" };
        format!("{}/cloud-init-data/{namespace}/{name}/{file}", self.ephemeral)
    }

    /// Ignition data.
    pub fn ignition(&self, namespace: &str, name: &str) -> String {
        format!("{}/ignition-data/{namespace}/{name}/data.ign", self.ephemeral)
    }

    /// An ISO image that the launcher makes of a volume.
    pub fn iso(&self, iso: Iso, volume: &str) -> String {
        let folder = match iso {
            Iso::ConfigMap => "config-map-disks",
            Iso::Secret => "secret-disks",
            Iso::DownwardApi => "downwardapi-disks",
            Iso::Sysprep => "sysprep-disks",
        };
        format!("{}/{folder}/{volume}.iso", self.private)
    }

    /// Mounted folder with the files of an ISO image.
    pub fn iso_source(&self, iso: Iso, volume: &str) -> String {
        match iso {
            Iso::ConfigMap => format!("{}/config-map/{volume}", self.private),
            Iso::Secret => self.secret(volume),
            Iso::DownwardApi => format!("{}/downwardapi/{volume}", self.private),
            Iso::Sysprep => format!("{}/sysprep/{volume}", self.private),
        }
    }

    /// Mounted folder of a Secret, by the volume that asks for it.
    pub fn secret(&self, volume: &str) -> String {
        format!("{}/secret/{volume}", self.private)
    }

    /// Mounted folder of a Secret with access credentials.
    pub fn access_credential(&self, secret: &str) -> String {
        self.secret(&format!("{secret}-access-cred"))
    }

    /// ISO image of the service account.
    pub fn service_account(&self) -> String {
        format!("{}/service-account-disk/service-account.iso", self.private)
    }

    /// Disk with the host's metrics.
    pub fn downward_metrics_disk(&self) -> String {
        format!("{}/downwardapi-disks/vhostmd0", self.private)
    }

    /// Socket of the channel with the host's metrics.
    pub fn downward_metrics_channel(&self) -> String {
        format!("{}/downwardmetrics-channel/downwardmetrics.sock", self.private)
    }

    /// File of a Secret volume with an ACPI table, such as `slic.bin`.
    pub fn acpi_table(&self, volume: &str, table: &str) -> String {
        format!("{}/secret/{volume}/{table}.bin", self.private)
    }

    /// Socket of a shared directory's file server.
    pub fn filesystem(&self, volume: &str) -> String {
        format!("{}/{volume}.sock", self.filesystems)
    }

    /// Variables of the UEFI firmware.
    pub fn nvram(&self, name: &str) -> String {
        format!("{}/libvirt/qemu/nvram/{name}_VARS.fd", self.private)
    }

    /// Folder of the state of the TPM of a machine with this UUID.
    pub fn tpm_state(&self, uuid: &str) -> String {
        format!("{}/libvirt/qemu/swtpm/{uuid}/tpm2", self.private)
    }

    /// Image that tracks which blocks of a volume changed.
    pub fn changed_blocks(&self, volume: &str) -> String {
        format!("{}/libvirt/qemu/cbt/{volume}.qcow2", self.private)
    }
}
