//! Instance types and preferences that are found through a volume.

use kubevirt_api::vm::{InferFromVolumeFailurePolicy, InstancetypeMatcher, PreferenceMatcher};

use super::build::Draft;
use crate::commands::create::params::FlagError;

const ONLY: &str = "inference of instancetype or preference works only with datasources, datavolumes or pvcs";
const DATA_VOLUMES: &str = "this datavolume is not valid to infer an instancetype or preference from (source needs \
                            to be PVC, Registry or Snapshot, sourceRef needs to be DataSource)";

/// Infers the instance type, unless one is named or the memory is given.
pub(super) fn instancetype(draft: &mut Draft<'_>) -> Result<(), FlagError> {
    let arguments = draft.arguments;
    let named = arguments.instancetype.is_some() || arguments.memory.is_some();
    let from = arguments.infer_instancetype_from.as_deref();
    let Some((volume, explicit)) =
        wanted(draft, "infer-instancetype", named, arguments.infer_instancetype, from)?
    else {
        return Ok(());
    };
    if explicit {
        draft.instance.domain.memory = None;
    }
    draft.spec.instancetype = Some(InstancetypeMatcher {
        infer_from_volume: Some(volume),
        infer_from_volume_failure_policy: policy(explicit),
        ..Default::default()
    });
    Ok(())
}

/// Infers the preference, unless one is named.
pub(super) fn preference(draft: &mut Draft<'_>) -> Result<(), FlagError> {
    let arguments = draft.arguments;
    let named = arguments.preference.is_some();
    let from = arguments.infer_preference_from.as_deref();
    let Some((volume, explicit)) =
        wanted(draft, "infer-preference", named, arguments.infer_preference, from)?
    else {
        return Ok(());
    };
    draft.spec.preference = Some(PreferenceMatcher {
        infer_from_volume: Some(volume),
        infer_from_volume_failure_policy: policy(explicit),
        ..Default::default()
    });
    Ok(())
}

/// What nobody asked for may fail: the machine then falls back to what the manifest says.
fn policy(explicit: bool) -> Option<InferFromVolumeFailurePolicy> {
    (!explicit).then_some(InferFromVolumeFailurePolicy::Ignore)
}

/// The volume to infer from, and whether the user asked for it; who did not ask gets no error.
fn wanted(
    draft: &Draft<'_>,
    flag: &'static str,
    named: bool,
    switch: Option<bool>,
    from: Option<&str>,
) -> Result<Option<(String, bool)>, FlagError> {
    if named || switch == Some(false) {
        return Ok(None);
    }
    let explicit = switch.is_some() || from.is_some();
    let flag = match (from, flag) {
        (None, flag) => flag,
        (Some(_), "infer-instancetype") => "infer-instancetype-from",
        (Some(_), _) => "infer-preference-from",
    };
    match volume(draft, from) {
        Ok(volume) => Ok(Some((volume, explicit))),
        Err(problem) if explicit => Err(FlagError::new(flag, problem)),
        Err(_) => Ok(None),
    }
}

/// The named volume or the one that boots first, if it can say something.
fn volume(draft: &Draft<'_>, from: Option<&str>) -> Result<String, String> {
    let first_disk = || draft.boot_orders.values().next().map(String::as_str);
    let first_volume = || draft.instance.volumes.iter().flatten().next().map(|volume| volume.name.as_str());
    let name = from
        .filter(|name| !name.is_empty())
        .or_else(first_disk)
        .or_else(first_volume)
        .ok_or("at least one volume is needed to infer an instance type or preference")?;
    let volume = draft.volume(name).ok_or_else(|| format!("there is no volume with name \"{name}\""))?;
    if let Some(data_volume) = &volume.data_volume {
        can_say(draft, &data_volume.name)?;
    } else if volume.persistent_volume_claim.is_none() {
        return Err(ONLY.into());
    }
    Ok(name.to_owned())
}

/// Whether labels can be found where the data comes from.
fn can_say(draft: &Draft<'_>, name: &str) -> Result<(), String> {
    let mut templates = draft.spec.data_volume_templates.iter().flatten();
    let named = templates.find(|template| {
        template.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()) == Some(name)
    });
    let Some(template) = named else { return Ok(()) };
    let by_source =
        template.spec.source.as_ref().is_some_and(|source| {
            source.pvc.is_some() || source.registry.is_some() || source.snapshot.is_some()
        });
    if by_source || template.spec.source_ref.is_some() { Ok(()) } else { Err(DATA_VOLUMES.into()) }
}
