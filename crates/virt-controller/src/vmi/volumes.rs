//! Whether the volumes of an instance are ready for a pod.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kubevirt_api::data_volume::{DataVolume, DataVolumePhase};
use kubevirt_api::names::reasons::vmi as reasons;
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_component::events::Kind;

use super::observe::Observed;
use super::plan::{Event, Plan, Trouble};
use crate::context::{claim_name, controller};

/// How far a volume, or all of them together, has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Readiness {
    /// It is being filled.
    NotReady,
    /// It is filled as soon as a pod is scheduled that uses it.
    WaitsForConsumer,
    /// A pod can use it.
    Ready,
}

/// What is missing before one can tell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// There is no such claim.
    #[error("PVC {0} does not exist, waiting for it to appear")]
    Claim(String),
    /// There is no such data volume, though a claim says that it belongs to it.
    #[error("DataVolume {0} does not exist, waiting for it to appear")]
    DataVolume(String),
}

/// The data volume that fills a claim.
pub fn data_volume_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    controller(claim).filter(|owner| owner.kind == "DataVolume").map(|owner| owner.name.as_str())
}

/// The phase of a data volume.
pub fn phase(volume: &DataVolume) -> Option<&DataVolumePhase> {
    volume.status.as_ref()?.phase.as_ref()
}

/// Whether the volume may be plugged and unplugged while the guest runs.
pub fn is_pluggable(volume: &Volume) -> bool {
    let claim = volume.persistent_volume_claim.as_ref().and_then(|claim| claim.hotpluggable);
    let data = volume.data_volume.as_ref().and_then(|data| data.hotpluggable);
    let dump = volume.memory_dump.as_ref().and_then(|dump| dump.hotpluggable);
    [claim, data, dump].contains(&Some(true))
}

/// How far a volume has come. A claim that no data volume fills is somebody else's, and taken as it is.
pub fn readiness(observed: &Observed, claim: &str) -> Result<Readiness, Missing> {
    let missing =
        |name: &str| format!("{}/{name}", observed.vmi.metadata.namespace.as_deref().unwrap_or_default());
    let Some(found) = observed.claims.get(claim) else { return Err(Missing::Claim(missing(claim))) };
    let Some(filled_by) = data_volume_of(found) else { return Ok(Readiness::Ready) };
    let volume =
        observed.data_volumes.get(filled_by).ok_or_else(|| Missing::DataVolume(missing(filled_by)))?;
    Ok(match phase(volume) {
        Some(DataVolumePhase::Succeeded | DataVolumePhase::PendingPopulation) => Readiness::Ready,
        Some(DataVolumePhase::WaitForFirstConsumer) => Readiness::WaitsForConsumer,
        _ => Readiness::NotReady,
    })
}

/// How far all volumes have come that the first pod needs.
pub fn all(observed: &Observed, plan: &mut Plan) -> Result<Readiness, Trouble> {
    let volumes = observed.vmi.spec.volumes.as_deref().unwrap_or_default();
    let needed = volumes.iter().filter(|volume| {
        (volume.data_volume.is_some() || volume.persistent_volume_claim.is_some()) && !is_pluggable(volume)
    });
    let mut worst = Readiness::Ready;
    for claim in needed.filter_map(claim_name) {
        let one = readiness(observed, claim).map_err(|missing| {
            let message = missing.to_string();
            plan.events.push(Event {
                kind: Kind::Normal,
                reason: reasons::FAILED_PVC_NOT_FOUND,
                message: message.clone(),
            });
            Trouble::waiting(reasons::FAILED_PVC_NOT_FOUND, message)
        })?;
        worst = worst.min(one);
    }
    Ok(worst)
}

/// Whether a data volume of the instance failed.
pub fn any_failed(observed: &Observed) -> bool {
    observed.data_volumes.values().any(|volume| phase(volume) == Some(&DataVolumePhase::Failed))
}

/// Whether a data volume of the instance waits for its first pod.
pub fn any_waits_for_consumer(observed: &Observed) -> bool {
    let waits = |volume: &DataVolume| phase(volume) == Some(&DataVolumePhase::WaitForFirstConsumer);
    !any_failed(observed) && observed.data_volumes.values().any(|volume| waits(volume))
}
