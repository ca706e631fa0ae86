//! Containers beside the one that runs the machine, and before it.

use k8s_openapi::api::core::v1::{Container, ResourceRequirements, VolumeMount};
use kubevirt_api::kubevirt::configuration::SupportContainerType;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_domain::Layout;

use super::command::CONTAINER_DISK;
use super::quantities::quantity;
use super::surroundings::{Purpose, Surroundings};
use super::volumes::{self, images};
use super::{USER, environment, instance, security, support};

/// Further containers of a pod.
#[derive(Default)]
pub(super) struct Sidecars {
    /// Those that run beside the machine.
    pub beside: Vec<Container>,
    /// Those that are started before it, in order.
    pub before: Vec<Container>,
}

/// The further containers that a VMI needs.
pub(super) fn of(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> Sidecars {
    let mut all = Sidecars::default();
    if around.purpose == Purpose::Provision {
        return all;
    }
    all.before.extend(console_log(vmi, around));
    let disks = images::of(vmi, around);
    if around.image_volumes {
        // Only a container tells which image it runs; a machine that moves must get the very same.
        all.before
            .extend(disks.iter().filter(|disk| disk.needs_digest()).map(|disk| named(disk, vmi, around)));
    } else if !disks.is_empty() {
        all.before.push(binary(vmi, around));
        all.before.extend(disks.iter().map(|disk| pull(disk, vmi, around)));
        all.beside.extend(disks.iter().map(|disk| hold(disk, vmi, around)));
    }
    let shared = instance::volumes(vmi).filter(|volume| is_shared(vmi, volume));
    all.beside.extend(shared.map(|volume| file_server(volume, vmi, around)));
    all
}

/// Whether the VMI asks for a container of its own for the console's log. Without that word the launcher logs it itself.
pub(super) fn logs_console_apart(vmi: &VirtualMachineInstance) -> bool {
    let devices = &vmi.spec.domain.devices;
    devices.autoattach_serial_console != Some(false) && devices.log_serial_console == Some(true)
}

fn console_log(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> Option<Container> {
    if !logs_console_apart(vmi) {
        return None;
    }
    let layout = Layout::default();
    let uid = vmi.metadata.uid.as_deref().unwrap_or_default();
    let kind = SupportContainerType::GuestConsoleLog;
    let verbosity = environment::verbosity(vmi, around.config).to_string();
    Some(Container {
        command: words(&["/usr/bin/virt-tail"]),
        args: words(&["--logfile", &layout.machine(uid, "virt-serial0-log")]),
        env: Some(vec![environment::set(environment::VERBOSITY, verbosity)]),
        volume_mounts: Some(vec![volumes::read_only("private", &layout.private)]),
        resources: Some(support::resources(
            around.config,
            &kind,
            &support::CONSOLE_LOG,
            instance::bounded(vmi),
        )),
        // It is to be there as long as the machine is.
        restart_policy: Some("Always".to_owned()),
        ..ours("guest-console-log", around)
    })
}

/// Puts our small program where containers of foreign images find it.
fn binary(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> Container {
    let kind = SupportContainerType::ContainerDisk;
    let mut context = security::powerless();
    context.run_as_group = Some(USER);
    Container {
        command: words(&["/usr/bin/cp", "--preserve=all", CONTAINER_DISK, &format!("/init{CONTAINER_DISK}")]),
        env: Some(environment::homes(vmi)),
        volume_mounts: Some(vec![volumes::mount(volumes::BINARIES, "/init/usr/bin")]),
        resources: Some(support::resources(around.config, &kind, &support::COPY, instance::bounded(vmi))),
        security_context: Some(context),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..ours("container-disk-binary", around)
    }
}

/// Ends at once: has the image pulled before the machine starts, so that its disk is there in time.
fn pull(disk: &images::Image<'_>, vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> Container {
    let name = format!("{}-init", disk.container());
    Container { args: words(&["--no-op"]), ..foreign(name, disk, vmi, around) }
}

/// Holds the image open for as long as the machine runs, for the handler to find its files.
fn hold(disk: &images::Image<'_>, vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> Container {
    let path = format!("{}/{}", images::sockets(vmi), disk.place());
    Container { args: words(&["--copy-path", &path]), ..foreign(disk.container(), disk, vmi, around) }
}

fn foreign(
    name: String,
    disk: &images::Image<'_>,
    vmi: &VirtualMachineInstance,
    around: &Surroundings<'_>,
) -> Container {
    let mounts = vec![
        volumes::mount(volumes::CONTAINER_DISKS, &images::sockets(vmi)),
        volumes::mount(volumes::BINARIES, "/usr/bin"),
    ];
    Container {
        name,
        image: Some(disk.reference.to_owned()),
        image_pull_policy: disk.pull_policy.map(str::to_owned),
        command: words(&[CONTAINER_DISK]),
        volume_mounts: Some(mounts),
        resources: Some(holding(vmi, around)),
        security_context: Some(security::powerless()),
        ..Container::default()
    }
}

/// Ends at once, and leaves in the pod's status which image the disk's name stood for.
fn named(disk: &images::Image<'_>, vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> Container {
    Container {
        name: disk.container(),
        image: Some(disk.reference.to_owned()),
        image_pull_policy: disk.pull_policy.map(str::to_owned),
        command: words(&[&format!("{}{CONTAINER_DISK}", images::LAUNCHER_MOUNT)]),
        args: words(&["--no-op"]),
        volume_mounts: Some(vec![volumes::read_only(images::LAUNCHER_VOLUME, images::LAUNCHER_MOUNT)]),
        resources: Some(holding(vmi, around)),
        security_context: Some(security::powerless()),
        ..Container::default()
    }
}

fn holding(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> ResourceRequirements {
    let kind = SupportContainerType::ContainerDisk;
    let bounded = instance::bounded(vmi);
    let mut resources = support::resources(around.config, &kind, &support::CONTAINER_DISK, bounded);
    let requests = resources.requests.get_or_insert_default();
    requests.insert("ephemeral-storage".to_owned(), quantity("50M"));
    resources
}

fn is_shared(vmi: &VirtualMachineInstance, volume: &Volume) -> bool {
    vmi.spec.domain.devices.filesystems.iter().flatten().any(|shared| shared.name == volume.name)
}

/// Serves a volume to the guest as a directory.
fn file_server(volume: &Volume, vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> Container {
    let layout = Layout::default();
    let source = volumes::shared_source(volume, &layout);
    let mut arguments = vec![
        format!("--socket-path={}", layout.filesystem(&volume.name)),
        format!("--shared-dir={source}"),
        "--sandbox=none".to_owned(),
        "--cache=auto".to_owned(),
        // A file that cannot be found again after a move is an error for the guest, not for the move.
        "--migration-on-error=guest-error".to_owned(),
        "--migration-mode=find-paths".to_owned(),
    ];
    let mut mounts: Vec<VolumeMount> = vec![volumes::mount(volumes::FILESYSTEMS, &layout.filesystems)];
    if volume.service_account.is_some() {
        // The token is a link in a folder that others may write to, which guests follow only if it is root's.
        arguments.push(format!("--translate-uid=host:{USER}:0:1"));
    } else {
        mounts.push(volumes::mount(&volume.name, &source));
    }
    let mut context = security::powerless();
    context.run_as_group = Some(USER);
    let kind = SupportContainerType::Virtiofs;
    Container {
        command: words(&["/usr/libexec/virtiofsd"]),
        args: Some(arguments),
        volume_mounts: Some(mounts),
        resources: Some(support::resources(around.config, &kind, &support::VIRTIOFS, instance::bounded(vmi))),
        security_context: Some(context),
        ..ours(&format!("virtiofs-{}", volume.name), around)
    }
}

/// A container of our own image.
fn ours(name: &str, around: &Surroundings<'_>) -> Container {
    Container {
        name: name.to_owned(),
        image: Some(around.launcher_image.to_owned()),
        image_pull_policy: around.config.configuration().image_pull_policy.clone(),
        security_context: Some(security::powerless()),
        ..Container::default()
    }
}

fn words(words: &[&str]) -> Option<Vec<String>> {
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}
