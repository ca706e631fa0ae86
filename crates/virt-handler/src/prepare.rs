//! What a launcher's pod needs from outside, in three moments: before its machine starts, while it runs, after its end.
//!
//! All of it can be repeated: what is there already and right is left alone. What is mounted or taken apart is
//! written down first, in the handler's private folder, so a handler that restarts in the middle finds its way back.

mod error;
mod record;

use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_network::Wiring;

pub use crate::container_disks::Checksums;
pub use crate::hotplug::{HotplugState, Progress};
pub use crate::isolation::{Folders, Place};
pub use error::PrepareError;
pub(crate) use error::{failed, hopeless};
pub use record::Remembered;
pub(crate) use record::{Ledger, Mounted, Plugged};

use crate::volumes::bind;
use crate::{container_disks, hotplug, network, permissions, volumes};

/// A pod that is ready for its machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prepared {
    /// How each network is wired up, for the launcher.
    pub network: Vec<Wiring>,
    /// How far hotplugged volumes have got.
    pub hotplug: Vec<HotplugState>,
    /// The launcher's SELinux context, or `none` where the host has no SELinux.
    pub selinux_context: String,
    /// What the user should hear of, as events with the reason `ToleratedSmallPV`.
    pub notes: Vec<String>,
}

/// A running machine's pod, brought in line with its VMI.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Running {
    /// How each network is wired up, for the launcher.
    pub network: Vec<Wiring>,
    /// How far hotplugged volumes have got.
    pub hotplug: Vec<HotplugState>,
    /// What could not be plugged or unplugged, and why; the rest of the machine does not suffer from it.
    pub problems: Vec<String>,
}

/// Makes a pod ready for its machine to start in.
pub async fn before_start(
    vmi: &VirtualMachineInstance,
    place: &Place,
    config: &ClusterConfig,
) -> Result<Prepared, PrepareError> {
    let mut ledger = Ledger::open(place, vmi)?;
    let network = network::start(vmi, place, config, &mut ledger).await?;
    let (vmi, place, config) = (vmi.clone(), place.clone(), config.clone());
    let rest = move || {
        container_disks::mount(&vmi, &place, &mut ledger)?;
        let hotplug = hotplug::plug(&vmi, &place, &mut ledger)?;
        if let Some(waiting) = hotplug.iter().find_map(HotplugState::waiting) {
            return Err(PrepareError::NotYet(waiting));
        }
        let label = permissions::Label::of(&place)?;
        let notes = volumes::make_images(&vmi, &place, &config, &label)?;
        permissions::give_devices(&vmi, &place)?;
        permissions::allow_locking(&vmi, &place)?;
        Ok(Prepared { network, hotplug, selinux_context: label.context(), notes })
    };
    blocking(rest).await
}

/// Brings the pod of a running machine in line with its VMI: volumes and interfaces that come and go.
pub async fn while_running(
    vmi: &VirtualMachineInstance,
    place: &Place,
    config: &ClusterConfig,
) -> Result<Running, PrepareError> {
    let mut ledger = Ledger::open(place, vmi)?;
    let (network, mut problems) = network::change(vmi, place, config, &mut ledger).await?;
    let (vmi, place) = (vmi.clone(), place.clone());
    let rest = move || {
        problems.extend(hotplug::unplug(&vmi, &place, &mut ledger)?);
        let hotplug = hotplug::plug(&vmi, &place, &mut ledger)?;
        permissions::allow_locking(&vmi, &place)?;
        Ok(Running { network, hotplug, problems })
    };
    blocking(rest).await
}

/// The checksums of container disks, as KubeVirt reports them in the status; nothing if the status has them all or
/// the cluster mounts images itself. Reads whole images, so it is not for the way to Running.
pub async fn checksums(
    vmi: &VirtualMachineInstance,
    place: &Place,
) -> Result<Option<Checksums>, PrepareError> {
    let (vmi, place) = (vmi.clone(), place.clone());
    blocking(move || container_disks::checksums(&vmi, &place)).await
}

/// Takes back all that was done for a pod, which may be gone already. Then nothing is known of it any more.
pub async fn after_end(pod_uid: &str, folders: &Folders) -> Result<(), PrepareError> {
    let (pod_uid, folders) = (pod_uid.to_owned(), folders.clone());
    let work = move || {
        let Some(ledger) = Ledger::existing(&pod_uid, &folders)? else { return Ok(()) };
        for mounted in &ledger.record().mounts {
            bind::unbind(&folders, &pod_uid, mounted)?;
        }
        for plugged in &ledger.record().devices {
            hotplug::remove_device(&folders, &pod_uid, &plugged.name)?;
        }
        ledger.forget()
    };
    blocking(work).await
}

/// All pods that something was done for and not taken back, such as before the handler restarted.
pub fn remembered(folders: &Folders) -> Result<Vec<Remembered>, PrepareError> {
    record::all(folders)
}

/// Runs work that waits for the kernel away from the threads that serve everyone.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PrepareError> + Send + 'static,
) -> Result<T, PrepareError> {
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}
