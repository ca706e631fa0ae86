//! The claim that keeps what firmware and TPM remember, and which blocks changed.

use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, Volume};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Layout;

use super::super::error::NoPod;
use super::super::instance;
use super::super::surroundings::Surroundings;
use super::{Volumes, part};

const NAME: &str = "vm-state";

/// Adds it, if the VMI has anything to keep.
pub(super) fn add(
    vmi: &VirtualMachineInstance,
    around: &Surroundings<'_>,
    layout: &Layout,
    all: &mut Volumes,
) -> Result<(), NoPod> {
    if !instance::keeps_state(vmi) {
        return Ok(());
    }
    let claim_name = around.state_claim.clone().ok_or(NoPod::MissingStateClaim)?;
    let source = PersistentVolumeClaimVolumeSource { claim_name, read_only: None };
    all.volumes.push(Volume {
        name: NAME.to_owned(),
        persistent_volume_claim: Some(source),
        ..Volume::default()
    });
    all.mounts.push(part(NAME, "meta", "/run/kubevirt-private/backend-storage-meta"));
    // A container runtime would make the folders above the claim's as root, and nobody else could write there.
    let private = &layout.private;
    all.folder("private-libvirt", &format!("{private}/libvirt"));
    all.folder("private-libvirt-qemu", &format!("{private}/libvirt/qemu"));
    if instance::keeps_tpm(vmi) {
        all.mounts.push(part(NAME, "swtpm", &format!("{private}/libvirt/qemu/swtpm")));
        all.mounts.push(part(NAME, "swtpm-localca", &format!("{private}/var/lib/swtpm-localca")));
    }
    if instance::keeps_firmware(vmi) {
        all.mounts.push(part(NAME, "nvram", &format!("{private}/libvirt/qemu/nvram")));
    }
    if vmi.tracks_blocks() {
        all.mounts.push(part(NAME, "cbt", &format!("{private}/libvirt/qemu/cbt")));
    }
    Ok(())
}
