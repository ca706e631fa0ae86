//! What a launcher is told when its pod starts.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser};

/// Runs one virtual machine for its whole life.
///
/// The flags are those of KubeVirt's virt-launcher. Some speak of libvirt or of choices that we do not have; they
/// are accepted, so that any pod that was written for KubeVirt starts.
#[derive(Clone, Debug, Parser)]
#[command(name = "virt-launcher", version, disable_version_flag = true, args_override_self = true)]
pub struct Arguments {
    /// Name of the VirtualMachineInstance.
    #[arg(long)]
    pub name: String,
    /// Namespace of the VirtualMachineInstance.
    #[arg(long)]
    pub namespace: String,
    /// UID of the VirtualMachineInstance.
    #[arg(long, default_value = "")]
    pub uid: String,
    /// How long to wait for the machine to be asked for.
    #[arg(long, default_value = "3m", value_parser = duration)]
    pub qemu_timeout: Duration,
    /// Folder that handler and launcher share.
    #[arg(long, default_value = "/var/run/kubevirt")]
    pub kubevirt_share_dir: PathBuf,
    /// Folder that only the launcher and QEMU use.
    #[arg(long, default_value = "/var/run/kubevirt-private")]
    pub private_dir: PathBuf,
    /// Folder of scratch disks.
    #[arg(long, default_value = "/var/run/kubevirt-ephemeral-disks")]
    pub ephemeral_disk_dir: PathBuf,
    /// Folder of container disks.
    #[arg(long, default_value = "/var/run/kubevirt/container-disks")]
    pub container_disk_dir: PathBuf,
    /// Folder of disks that are added while the machine runs.
    #[arg(long, default_value = "/var/run/kubevirt/hotplug-disks")]
    pub hotplug_disk_dir: PathBuf,
    /// Seconds that the guest has to shut down before the machine is ended.
    #[arg(long, default_value_t = 30)]
    pub grace_period_seconds: u32,
    /// Run without KVM if KVM does not work.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    pub allow_emulation: bool,
    /// Run without KVM.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    pub use_emulation: bool,
    /// Run guests of another architecture than the host's.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    pub allow_cross_arch_emulation: bool,
    /// Folder of the UEFI images.
    #[arg(long, default_value = "/usr/share/OVMF")]
    pub ovmf_path: PathBuf,
    /// Number of hook sidecars to wait for; only 0 can be met.
    #[arg(long, default_value_t = 0)]
    pub hook_sidecars: u32,
    /// Percentage by which a disk image may be smaller than asked for.
    #[arg(long, default_value_t = 10)]
    pub less_pvc_space_toleration: u8,
    /// Container disks are image volumes of the pod.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    pub image_volume: bool,
    /// Hypervisor to use; only `kvm` is known.
    #[arg(long, default_value = "kvm")]
    pub hypervisor: String,
    /// Time between two questions to the guest agent about the system and its network.
    #[arg(long, default_value = "120s", value_parser = duration)]
    pub qemu_agent_sys_interval: Duration,
    /// Time between two questions to the guest agent about file systems.
    #[arg(long, default_value = "300s", value_parser = duration)]
    pub qemu_agent_file_interval: Duration,
    /// Time between two questions to the guest agent about users.
    #[arg(long, default_value = "10s", value_parser = duration)]
    pub qemu_agent_user_interval: Duration,
    /// Time between two questions to the guest agent about its version.
    #[arg(long, default_value = "300s", value_parser = duration)]
    pub qemu_agent_version_interval: Duration,
    /// Time between two questions to the guest agent about frozen file systems.
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub qemu_fsfreeze_status_interval: Duration,
    /// End at once, as tests of crash loops need it.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    pub simulate_crash: bool,
    /// Stay after a failure, so that somebody can look.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    pub keep_after_failure: bool,
    /// A container of its own shows the guest's console, so the launcher does not.
    #[arg(long, hide = true)]
    pub serial_log_container: bool,
    /// How much to log.
    #[arg(short = 'v', long = "v", env = "VIRT_LAUNCHER_LOG_VERBOSITY")]
    pub verbosity: Option<u32>,
    /// What changes nothing here.
    #[command(flatten)]
    pub unused: Unused,
}

/// Flags of KubeVirt's launcher that change nothing here.
#[derive(Clone, Debug, clap::Args)]
pub struct Unused {
    /// Launchers never need root.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    run_as_nonroot: Option<bool>,
    /// There is no libvirt.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    libvirt_hook_server_and_client: Option<bool>,
    /// There is no libvirt.
    #[arg(long, hide = true)]
    libvirt_log_filters: Option<String>,
    /// Interfaces are found by either naming.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    upgrade_ordinal_ifaces: Option<bool>,
    /// Mediated devices are named by the target of a migration.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    vgpu_dedicated_hook: Option<bool>,
    /// Statistics are collected when they are asked for.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    vm_stats_collector: Option<bool>,
    /// Firmware is found by the names of its files.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    firmware_auto_selection: Option<bool>,
    /// Images are checked by reading their headers, which needs no memory to speak of.
    #[arg(long, hide = true)]
    disk_memory_limit: Option<i64>,
    /// The socket is there once the launcher is ready.
    #[arg(long, hide = true)]
    readiness_file: Option<PathBuf>,
    /// The socket is there once the launcher is ready.
    #[arg(long, hide = true)]
    qemu_timeout_seconds: Option<u32>,
}

impl Arguments {
    /// Folder of the launcher's own socket.
    pub fn sockets(&self) -> PathBuf {
        self.kubevirt_share_dir.join("sockets")
    }
}

/// Reads a duration as Go writes it: `299s`, `5m`, `1h30m`, `1.5s`.
fn duration(text: &str) -> Result<Duration, String> {
    let told =
        kubevirt_api::duration::Duration(text.to_owned()).parse().map_err(|error| error.to_string())?;
    Ok(told.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("virt-launcher").chain(line.split_whitespace()))
    }

    #[test]
    fn the_command_lines_of_old_and_new_pods_are_taken() {
        let old = "--qemu-timeout 5m --name testvm --uid c792 --namespace default --kubevirt-share-dir /s \
            --ephemeral-disk-dir /e --container-disk-dir /c --grace-period-seconds 45 --hook-sidecars 0 \
            --less-pvc-space-toleration 10 --ovmf-path /usr/share/OVMF --use-emulation";
        let told = parse(old).unwrap();
        assert_eq!((told.qemu_timeout.as_secs(), told.grace_period_seconds), (300, 45));
        assert!(told.use_emulation && !told.allow_emulation);
        // The last of two counts.
        assert_eq!(parse(&format!("{old} --grace-period-seconds 5")).unwrap().grace_period_seconds, 5);

        let new = "--qemu-timeout 299s --name web --uid ad00 --namespace default --kubevirt-share-dir /var/run/kubevirt \
            --ephemeral-disk-dir /e --container-disk-dir /c --grace-period-seconds 45 --hook-sidecars 0 \
            --ovmf-path /usr/share/edk2/ovmf --disk-memory-limit 2097152000 --hypervisor kvm --run-as-nonroot \
            --libvirt-hook-server-and-client --upgrade-ordinal-ifaces --allow-emulation";
        let told = parse(new).unwrap();
        assert!(told.allow_emulation);
        assert_eq!(told.sockets(), PathBuf::from("/var/run/kubevirt/sockets"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, word) in [
            ("--name a --namespace b --qemu-timeout soon", "soon"),
            ("--name a", "--namespace"),
            ("--name a --namespace b --no-such-flag", "--no-such-flag"),
        ] {
            assert!(parse(line).unwrap_err().to_string().contains(word), "{line}");
        }
    }
}
