//! The claim that holds the state of firmware and TPM.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use kubevirt_admission::ClusterConfig;
use kubevirt_api::data_volume::StorageProfile;
use kubevirt_api::names::external::{cdi, kubernetes};
use kubevirt_api::names::reasons::vmi as reasons;
use kubevirt_api::names::{annotations, labels};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{PersistentVolumeClaimInfo, VolumeStatus};
use kubevirt_component::NamespacedName;

use super::names;
use super::observe::Observed;
use super::plan::{Plan, Step, Trouble};
use crate::context::{Stores, index};

/// The name of the volume in the status.
pub const VOLUME: &str = "persistent-state-for-this-vm";
/// What the name of the claim starts with.
const PREFIX: &str = "persistent-state-for-";
/// What is asked for.
const SIZE: &str = "10Mi";
/// The same, if it is also kept there which blocks changed: some 30 MiB for a disk of 500 GiB with ten checkpoints.
const SIZE_WITH_CHANGES: &str = "522Mi";

/// How storage is set up, as far as the instance needs it.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    /// The claim with the instance's state.
    pub state: Option<Arc<PersistentVolumeClaim>>,
    /// Whether its storage class binds only what a pod uses; nothing if the class is not known.
    pub state_waits_for_consumer: Option<bool>,
    /// The storage class for such claims, if there is one to use.
    pub class: Option<String>,
    /// How such a claim is to be accessed.
    pub access_mode: String,
    /// Shares of file systems that are not for disk images.
    pub overhead: Overhead,
}

/// Shares of file systems that are not for disk images, as the importer reckons with them.
#[derive(Clone, Debug, Default)]
pub struct Overhead(Option<kubevirt_api::data_volume::FilesystemOverhead>);

impl Overhead {
    /// The share for a claim.
    pub fn of(&self, claim: &PersistentVolumeClaim) -> String {
        const USUAL: &str = "0.055";
        let Some(known) = &self.0 else { return USUAL.to_owned() };
        let spec = claim.spec.as_ref();
        if spec.and_then(|spec| spec.volume_mode.as_deref()) == Some("Block") {
            return "0".to_owned();
        }
        let class = spec.and_then(|spec| spec.storage_class_name.as_deref()).unwrap_or_default();
        let own = known.storage_class.as_ref().and_then(|classes| classes.get(class));
        own.or(known.global.as_ref()).cloned().unwrap_or_else(|| USUAL.to_owned())
    }
}

impl Storage {
    /// Looks up what the instance needs to know.
    pub fn look_up(stores: &Stores, vmi: &VirtualMachineInstance, config: &ClusterConfig) -> Self {
        let importer = stores.importer.get(&NamespacedName::new("", "config"));
        let overhead = importer.and_then(|config| config.status.as_ref()?.filesystem_overhead.clone());
        let state = claim_of(stores, vmi);
        let mut storage = Self { overhead: Overhead(overhead), state, ..Self::default() };
        if !is_needed(vmi) {
            return storage;
        }
        let chosen = config.configuration().vm_state_storage_class.clone().filter(|class| !class.is_empty());
        let usual = if chosen.is_some() { "ReadWriteMany" } else { "ReadWriteOnce" };
        storage.class = chosen.or_else(|| default_class(&stores.storage_classes.all()));
        let profile = storage.class.as_ref().and_then(|class| stores.storage_profiles.get(&cluster(class)));
        storage.access_mode = access_mode(profile.as_deref(), usual);
        let class = storage.state.as_ref().and_then(|claim| claim.spec.as_ref()?.storage_class_name.clone());
        let class = class.and_then(|class| stores.storage_classes.get(&cluster(&class)));
        storage.state_waits_for_consumer =
            class.map(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"));
        storage
    }
}

fn cluster(name: &str) -> NamespacedName {
    NamespacedName::new("", name)
}

/// Whether the guest has state beside its disks.
pub fn is_needed(vmi: &VirtualMachineInstance) -> bool {
    let domain = &vmi.spec.domain;
    let tpm = domain.devices.tpm.as_ref();
    let tpm = tpm.is_some_and(|tpm| tpm.enabled != Some(false) && tpm.persistent == Some(true));
    let loader = domain.firmware.as_ref().and_then(|firmware| firmware.bootloader.as_ref());
    let efi = loader.and_then(|loader| loader.efi.as_ref()?.persistent) == Some(true);
    tpm || efi || vmi.tracks_blocks()
}

/// The claim of the instance: the one that says so, or one that an older release made.
fn claim_of(stores: &Stores, vmi: &VirtualMachineInstance) -> Option<Arc<PersistentVolumeClaim>> {
    let key = NamespacedName::of(vmi);
    let marked = stores.claims.by(index::STATE_OF, &key.to_string());
    let old = || stores.claims.get(&NamespacedName::new(&key.namespace, format!("{PREFIX}{}", key.name)));
    let there = |claim: &Arc<PersistentVolumeClaim>| claim.metadata.deletion_timestamp.is_none();
    marked.into_iter().find(there).or_else(|| old().filter(there))
}

/// The storage class that is used where none is named: the one for machines before the one for all.
fn default_class(classes: &[Arc<StorageClass>]) -> Option<String> {
    let marked = |mark: &str| {
        let found =
            classes.iter().filter(|class| class.annotations().get(mark).is_some_and(|it| it == "true"));
        found.map(|class| class.name_any()).max()
    };
    marked(annotations::DEFAULT_VIRT_STORAGE_CLASS).or_else(|| marked(kubernetes::DEFAULT_STORAGE_CLASS))
}

fn access_mode(profile: Option<&StorageProfile>, usual: &str) -> String {
    let sets = profile.and_then(|profile| profile.status.as_ref()?.claim_property_sets.as_deref());
    let sets = sets.unwrap_or_default().iter().filter(|set| set.volume_mode.as_deref() == Some("Filesystem"));
    let modes: Vec<&String> = sets.flat_map(|set| set.access_modes.iter().flatten()).collect();
    let offered = |mode: &str| modes.iter().any(|offered| *offered == mode);
    let best = ["ReadWriteMany", "ReadWriteOnce"].into_iter().find(|mode| offered(mode));
    best.unwrap_or(usual).to_owned()
}

/// Sees to it that the claim is there before a pod needs it. Whether a pod can be made now.
pub fn decide(observed: &Observed, plan: &mut Plan) -> Result<bool, Trouble> {
    let claim = observed.storage.state.as_ref();
    if !is_needed(&observed.vmi) {
        plan.steps.extend(claim.cloned().map(Step::DeleteStateClaim));
        return Ok(true);
    }
    let Some(claim) = claim else {
        let wanted = wanted(observed)?;
        plan.steps.push(Step::CreateStateClaim(Box::new(wanted)));
        return Ok(false);
    };
    if !claim.labels().contains_key(labels::PERSISTENT_STATE_FOR) {
        plan.steps.push(Step::AdoptStateClaim(claim.clone()));
    }
    is_ready(observed, claim).map(|()| true)
}

fn is_ready(observed: &Observed, claim: &PersistentVolumeClaim) -> Result<(), Trouble> {
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    match (phase, observed.storage.state_waits_for_consumer) {
        (Some("Bound"), _) | (_, Some(true)) => Ok(()),
        (Some("Lost"), _) => {
            Err(Trouble::waiting(reasons::FAILED_BACKEND_STORAGE_PROBE, "backend storage PVC lost"))
        }
        (_, None) => {
            let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
            let message = format!("storage class {} not found", class.unwrap_or("(none)"));
            Err(Trouble::passing(reasons::FAILED_BACKEND_STORAGE_PROBE, message))
        }
        (_, Some(false)) => Err(Trouble::waiting(reasons::BACKEND_STORAGE_NOT_READY, "PVC pending")),
    }
}

fn wanted(observed: &Observed) -> Result<PersistentVolumeClaim, Trouble> {
    let vmi = &observed.vmi;
    let Some(class) = observed.storage.class.clone() else {
        let message = "no default storage class found";
        return Err(Trouble::passing(reasons::FAILED_BACKEND_STORAGE_CREATE, message));
    };
    // State outlives an instance if it belongs to a machine.
    let owners = vmi.metadata.owner_references.clone().filter(|owners| !owners.is_empty());
    let owners = owners.unwrap_or_else(|| vec![owner(vmi)]);
    let uid = owners.first().map(|owner| owner.uid.clone()).unwrap_or_default();
    let mut claim = PersistentVolumeClaim::default();
    claim.metadata.name = Some(names::state_claim(&vmi.name_any(), &uid));
    claim.metadata.namespace = vmi.namespace();
    claim.metadata.owner_references = Some(owners);
    let marks = [(labels::PERSISTENT_STATE_FOR, vmi.name_any()), (cdi::APPLY_STORAGE_PROFILE, "true".into())];
    claim.metadata.labels = Some(marks.map(|(name, value)| (name.to_owned(), value)).into());
    let size = if vmi.tracks_blocks() { SIZE_WITH_CHANGES } else { SIZE };
    claim.spec = Some(PersistentVolumeClaimSpec {
        access_modes: Some(vec![observed.storage.access_mode.clone()]),
        resources: Some(VolumeResourceRequirements {
            requests: Some([("storage".to_owned(), Quantity(size.to_owned()))].into()),
            ..Default::default()
        }),
        storage_class_name: Some(class),
        volume_mode: Some("Filesystem".to_owned()),
        ..Default::default()
    });
    Ok(claim)
}

/// The reference by which the instance owns what is made for it.
pub fn owner(vmi: &VirtualMachineInstance) -> OwnerReference {
    OwnerReference { block_owner_deletion: Some(true), ..vmi.controller_owner_ref(&()).unwrap_or_default() }
}

/// Reports the claim among the volumes.
pub fn report(claim: &PersistentVolumeClaim, volumes: &mut Option<Vec<VolumeStatus>>) {
    let volumes = volumes.get_or_insert_default();
    // Older releases called the volume as the claim.
    let at = volumes.iter().position(|volume| volume.name.starts_with(PREFIX)).unwrap_or_else(|| {
        volumes.push(VolumeStatus::default());
        volumes.len() - 1
    });
    let volume = &mut volumes[at];
    volume.name = VOLUME.to_owned();
    let info = volume.persistent_volume_claim_info.get_or_insert_with(PersistentVolumeClaimInfo::default);
    info.claim_name = claim.metadata.name.clone();
    info.access_modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.clone());
}
