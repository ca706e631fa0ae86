//! Whether a claim that is there can be uploaded to, and how far it is.

use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim};
use kubevirt_api::data_volume::{DataVolume, DataVolumeContentType, DataVolumePhase};
use kubevirt_api::names::external::cdi;

use super::plan::{Kind, Plan};

/// The phase of a pod that has done its work.
const SUCCEEDED: &str = "Succeeded";
/// What an API server says to who writes an old version; somebody else will try again.
const CONFLICT: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Why a claim cannot be uploaded to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It has its contents.
    #[error("PVC {0} already successfully imported/cloned/updated")]
    Full(String),
    /// It has its contents, by way of another claim.
    #[error("PVC {0} already successfully populated")]
    Populated(String),
    /// It is for something else.
    #[error("PVC {0} not available for upload; --no-create uploads to it all the same")]
    Other(String),
    /// It is not for archives.
    #[error("PVC {0} doesn't have archive contentType annotation")]
    NoArchive(String),
    /// The data volume is gone because it is done.
    #[error("DataVolume already garbage-collected: Assuming PVC {0} is successfully populated")]
    Collected(String),
    /// It was made without a data volume.
    #[error("No DataVolume is associated with the existing PVC {0}; upload to it as a pvc")]
    NoDataVolume(String),
    /// The claim that is filled in its place is not known.
    #[error("Unable to get PVC Prime name from PVC {0}")]
    NoPrime(String),
    /// It waits for a consumer.
    #[error("cannot upload to DataVolume in {0} phase, make sure the PVC is Bound, or use force-bind flag")]
    Waits(String),
    /// The storage does not work.
    #[error("Provisioning failed: {0}")]
    Provisioning(String),
    /// The data volume does not make sense.
    #[error("Claim not valid: {0}")]
    Invalid(String),
}

/// The annotation of a claim.
fn annotation<'a>(claim: &'a PersistentVolumeClaim, name: &str) -> Option<&'a str> {
    claim.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// The name of the claim to look at: the one that is there, or the one that is filled in its place.
pub fn filled(claim: &PersistentVolumeClaim, volume: Option<&DataVolume>) -> Result<Option<String>, Error> {
    let metadata = &claim.metadata;
    let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.clone().unwrap_or_default());
    let full = format!("{}/{name}", namespace.unwrap_or_default());
    let Some(volume) = volume else {
        let done = annotation(claim, cdi::DELETE_AFTER_COMPLETION) == Some("true")
            && annotation(claim, cdi::POD_PHASE) == Some(SUCCEEDED);
        return Err(if done { Error::Collected(full) } else { Error::NoDataVolume(full) });
    };
    let populated = volume.metadata.annotations.iter().flatten();
    if !populated.into_iter().any(|(key, value)| key == cdi::USE_POPULATOR && value == "true") {
        return Ok(None);
    }
    if claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound") {
        return Err(Error::Populated(name));
    }
    annotation(claim, cdi::PVC_PRIME).map(|prime| Some(prime.to_owned())).ok_or(Error::NoPrime(full))
}

/// Whether a claim that is there can be uploaded to.
pub fn check(claim: &PersistentVolumeClaim, plan: &Plan) -> Result<(), Error> {
    let name = || plan.name.clone();
    if annotation(claim, cdi::POD_PHASE) == Some(SUCCEEDED) {
        return Err(Error::Full(name()));
    }
    if !plan.no_create && annotation(claim, cdi::UPLOAD_TARGET).is_none() {
        return Err(Error::Other(name()));
    }
    let archive = DataVolumeContentType::Archive;
    if plan.archive && annotation(claim, cdi::CONTENT_TYPE) != Some(archive.as_str()) {
        return Err(Error::NoArchive(name()));
    }
    Ok(())
}

/// Whether a claim must be told that it is for uploads.
pub fn needs_mark(claim: &PersistentVolumeClaim) -> bool {
    annotation(claim, cdi::UPLOAD_TARGET).is_none()
}

/// Whether the upload pod of a claim is ready.
pub fn is_ready(claim: &PersistentVolumeClaim) -> bool {
    annotation(claim, cdi::POD_READY) == Some("true")
}

/// Whether the image is stored.
pub fn is_stored(claim: &PersistentVolumeClaim) -> bool {
    annotation(claim, cdi::POD_PHASE) == Some(SUCCEEDED)
}

/// Whether the upload pod of a data volume is ready.
pub fn volume_is_ready(volume: &DataVolume, plan: &Plan) -> Result<bool, Error> {
    let phase = volume.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
    let waits = matches!(phase, DataVolumePhase::WaitForFirstConsumer | DataVolumePhase::PendingPopulation);
    if waits && !plan.force_bind {
        return Err(Error::Waits(phase.as_str().to_owned()));
    }
    Ok(phase.as_str() == "UploadReady")
}

/// What events say about why it will never be ready.
pub fn hopeless(events: &[Event], claim: Option<&str>, volume: Option<&str>) -> Result<(), Error> {
    for event in events {
        let object = &event.involved_object;
        let is = |kind: &str, uid: Option<&str>| {
            object.kind.as_deref() == Some(kind) && uid.is_some() && object.uid.as_deref() == uid
        };
        let message = event.message.clone().unwrap_or_default();
        match event.reason.as_deref() {
            Some("ProvisioningFailed")
                if is("PersistentVolumeClaim", claim) && !message.contains(CONFLICT) =>
            {
                return Err(Error::Provisioning(message));
            }
            Some("ErrClaimNotValid") if is("DataVolume", volume) => return Err(Error::Invalid(message)),
            _ => {}
        }
    }
    Ok(())
}

/// What a new volume is called when it is made.
pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::DataVolume => "DataVolume",
        Kind::Claim => "PersistentVolumeClaim",
    }
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
