//! How the launcher is started.

use kubevirt_admission::Gate;
use kubevirt_api::names::annotations;
use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Layout;

use super::surroundings::{Purpose, Surroundings};
use super::{instance, name, sidecars};

/// Seconds that a guest has to shut down if its VMI says nothing.
const USUAL_GRACE: i64 = 30;

/// Seconds between the end of one's patience and the next one's: the handler's, the launcher's, the kubelet's.
pub(super) const GRACE_MARGIN: i64 = 15;

/// Seconds that a launcher usually waits at least for its machine to be asked for.
pub const TIMEOUT: u64 = 240;

/// Launchers give up within this many seconds after one another, so that not all of them do at once.
const TIMEOUT_SPREAD: u64 = 120;

/// The folder that the handler and the launcher share.
pub const SHARED: &str = "/var/run/kubevirt";

/// The program that ends at once; it is in the launcher's image for container disks.
pub(in crate::vmi) const CONTAINER_DISK: &str = "/usr/bin/container-disk";

/// Seconds that the launcher gives the guest: the handler, which waits less, should come first.
pub(super) fn grace_period(vmi: &VirtualMachineInstance) -> i64 {
    let own = vmi.spec.termination_grace_period_seconds.unwrap_or(USUAL_GRACE);
    own.max(0).saturating_add(GRACE_MARGIN)
}

/// The command of the container that runs the machine.
pub(super) fn of(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> Vec<String> {
    if around.purpose == Purpose::Provision {
        return vec![CONTAINER_DISK.to_owned(), "--no-op".to_owned()];
    }
    let mut line = Line(vec!["/usr/bin/virt-launcher-monitor".to_owned()]);
    identify(vmi, around.timeout, &mut line);
    places(&mut line);
    line.option("--grace-period-seconds", grace_period(vmi));
    line.option("--hook-sidecars", 0);
    settings(vmi, around, &mut line);
    switches(vmi, around, &mut line);
    line.0
}

fn identify(vmi: &VirtualMachineInstance, timeout: u64, line: &mut Line) {
    let uid = vmi.metadata.uid.as_deref().unwrap_or_default();
    let timeout = timeout.saturating_add(name::spread(uid, TIMEOUT_SPREAD));
    line.option("--qemu-timeout", format!("{timeout}s"));
    line.option("--name", vmi.metadata.name.as_deref().unwrap_or_default());
    line.option("--uid", uid);
    line.option("--namespace", vmi.metadata.namespace.as_deref().unwrap_or_default());
}

fn places(line: &mut Line) {
    let layout = Layout::default();
    line.option("--kubevirt-share-dir", SHARED);
    line.option("--ephemeral-disk-dir", layout.ephemeral);
    line.option("--container-disk-dir", layout.container_disks);
}

fn settings(vmi: &VirtualMachineInstance, around: &Surroundings<'_>, line: &mut Line) {
    let developer = around.config.configuration().developer_configuration.as_ref();
    let tolerated = developer.and_then(|developer| developer.pvc_tolerate_less_space_up_to_percent);
    let limit = developer.and_then(|developer| developer.disk_verification.as_ref());
    let limit = limit.and_then(|verification| verification.memory_limit.bytes().ok());
    if let Some(percent) = tolerated {
        line.option("--less-pvc-space-toleration", percent.clamp(0, 100));
    }
    if let Some(path) = firmware(vmi, around) {
        line.option("--ovmf-path", path);
    }
    if let Some(bytes) = limit {
        line.option("--disk-memory-limit", bytes);
    }
    line.option("--hypervisor", "kvm");
}

/// Folder of the UEFI images for the guest's architecture.
fn firmware(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> Option<String> {
    let configuration = around.config.configuration();
    if let Some(path) = super::text(&configuration.ovmf_path) {
        return Some(path);
    }
    let all = configuration.architecture_configuration.as_ref()?;
    let architecture = vmi.spec.architecture.as_deref().unwrap_or_default();
    let own = match architecture {
        "arm64" => all.arm64.as_ref(),
        "s390x" => all.s390x.as_ref(),
        _ => all.amd64.as_ref(),
    };
    super::text(&own?.ovmf_path)
}

fn switches(vmi: &VirtualMachineInstance, around: &Surroundings<'_>, line: &mut Line) {
    let has = |name| instance::annotation(vmi, name).is_some();
    let kept = instance::annotation(vmi, annotations::KEEP_LAUNCHER_AFTER_FAILURE);
    line.switch("--run-as-nonroot", !instance::as_root(vmi));
    line.switch("--image-volume", around.image_volumes);
    line.switch("--serial-log-container", sidecars::logs_console_apart(vmi));
    line.switch("--allow-emulation", super::resources::may_emulate(around.config));
    let foreign = around.config.enabled(Gate::CrossArchitectureVirtualization);
    line.switch("--allow-cross-arch-emulation", foreign);
    line.switch("--keep-after-failure", kept.is_some_and(|it| it.is_empty() || it.starts_with("true")));
    line.switch("--simulate-crash", has(annotations::TEST_LAUNCHER_FAIL_FAST));
}

/// A command line in the making.
struct Line(Vec<String>);

impl Line {
    fn option(&mut self, name: &str, value: impl ToString) {
        self.0.extend([name.to_owned(), value.to_string()]);
    }

    fn switch(&mut self, name: &str, on: bool) {
        self.0.extend(on.then(|| name.to_owned()));
    }
}
