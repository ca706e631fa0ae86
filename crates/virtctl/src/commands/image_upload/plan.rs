//! What the flags of `image-upload` ask for, and which of them go together.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::names::labels;
use kubevirt_api::quantity::Amount;

use super::Arguments;
use crate::commands;

/// Why nothing is uploaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Two sizes.
    #[error("--pvc-size and --size can not be specified at the same time")]
    Sizes,
    /// Two names.
    #[error("cannot use --pvc-name and args")]
    Names,
    /// No name.
    #[error("expecting two args: dv or pvc, and a name")]
    NoName,
    /// Not a thing to upload to.
    #[error("invalid resource type {0}; use dv or pvc")]
    Kind(String),
    /// Two modes.
    #[error("incompatible --volume-mode '{0}' and --block-volume")]
    Modes(String),
    /// Not a mode.
    #[error("Invalid volume mode '{0}'. Valid values are 'block' and 'filesystem'.")]
    Mode(String),
    /// Nothing to upload.
    #[error("either image-path or archive-path must be provided")]
    NoFile,
    /// Two things to upload.
    #[error("cannot handle both image-path and archive-path, provide only one")]
    Files,
    /// Files do not go onto a block device.
    #[error("In archive upload the volume mode should always be filesystem")]
    ArchiveOnBlock,
    /// Not a size.
    #[error("validation failed for size={0}: {1}")]
    Size(String, String),
    /// No way to write.
    #[error("cannot upload to a readonly volume, use either ReadWriteOnce or ReadWriteMany if supported")]
    ReadOnly,
    /// A kind of nothing.
    #[error("--{0} must be provided with --{0}-kind")]
    KindOnly(&'static str),
    /// Labels for a volume that is there.
    #[error("--default-instancetype and --default-preference cannot be used with --no-create")]
    Labels,
}

/// What is uploaded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A data volume.
    DataVolume,
    /// A claim.
    Claim,
}

/// An upload.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What is uploaded to.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// What is uploaded.
    pub file: PathBuf,
    /// Whether that is an archive.
    pub archive: bool,
    /// The size of a new volume.
    pub size: Option<Quantity>,
    /// Its storage class.
    pub storage_class: Option<String>,
    /// Its access mode.
    pub access_mode: Option<String>,
    /// Its mode, as the API has it.
    pub volume_mode: Option<&'static str>,
    /// Whether it must be there already.
    pub no_create: bool,
    /// Whether it is bound at once.
    pub force_bind: bool,
    /// Whether a data source shall point to it.
    pub data_source: bool,
    /// Labels with instance type and preference.
    pub labels: BTreeMap<String, String>,
    /// Where to upload to.
    pub proxy: Option<String>,
    /// Whether certificates are ignored.
    pub insecure: bool,
    /// How often it is tried again.
    pub retries: u32,
    /// How long the upload pod may take.
    pub wait: Duration,
}

/// Reads the flags; with words about those that are deprecated or change nothing.
pub fn of(arguments: &Arguments) -> Result<(Plan, Vec<String>), Error> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let (kind, name) = target(arguments)?;
    let (file, archive) = file(arguments)?;
    let volume_mode = volume_mode(arguments, archive)?;
    let access_mode = given(&arguments.access_mode);
    if access_mode.as_deref() == Some("ReadOnlyMany") {
        return Err(Error::ReadOnly);
    }
    let size = size(arguments)?;
    let labels = default_labels(arguments)?;
    if arguments.no_create && !labels.is_empty() {
        return Err(Error::Labels);
    }
    let plan = Plan {
        kind,
        name,
        file,
        archive,
        size,
        storage_class: given(&arguments.storage_class),
        access_mode,
        volume_mode,
        no_create: arguments.no_create,
        force_bind: arguments.force_bind,
        data_source: arguments.datasource,
        labels,
        proxy: given(&arguments.uploadproxy_url),
        insecure: arguments.insecure,
        retries: arguments.retry,
        wait: Duration::from_secs(arguments.wait_secs),
    };
    Ok((plan, warnings(arguments)))
}

fn warnings(arguments: &Arguments) -> Vec<String> {
    let deprecated = [
        ("pvc-name", arguments.pvc_name.is_some(), "specify the name as the second argument instead."),
        ("pvc-size", arguments.pvc_size.is_some(), "use --size instead."),
        (
            "block-volume",
            arguments.block_volume,
            "specify volume mode (filesystem/block) with --volume-mode instead.",
        ),
    ];
    let given = deprecated.into_iter().filter(|(_, given, _)| *given);
    let deprecated = given.map(|(flag, _, instead)| format!("Flag --{flag} has been deprecated, {instead}"));
    deprecated.chain(idle(arguments)).collect()
}

fn target(arguments: &Arguments) -> Result<(Kind, String), Error> {
    if let Some(name) = arguments.pvc_name.clone().filter(|name| !name.is_empty()) {
        let alone = arguments.kind.is_none() && arguments.target.is_none();
        return if alone { Ok((Kind::Claim, name)) } else { Err(Error::Names) };
    }
    let (Some(kind), Some(name)) = (&arguments.kind, &arguments.target) else { return Err(Error::NoName) };
    match kind.to_ascii_lowercase().as_str() {
        "dv" => Ok((Kind::DataVolume, name.clone())),
        "pvc" => Ok((Kind::Claim, name.clone())),
        _ => Err(Error::Kind(kind.clone())),
    }
}

fn file(arguments: &Arguments) -> Result<(PathBuf, bool), Error> {
    let given = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
    match (given(&arguments.image_path), given(&arguments.archive_path)) {
        (None, None) => Err(Error::NoFile),
        (Some(_), Some(_)) => Err(Error::Files),
        (Some(image), None) => Ok((image, false)),
        (None, Some(archive)) => Ok((archive, true)),
    }
}

fn volume_mode(arguments: &Arguments, archive: bool) -> Result<Option<&'static str>, Error> {
    let mode = match (arguments.volume_mode.as_deref().unwrap_or_default(), arguments.block_volume) {
        ("", false) => None,
        ("", true) | ("block", _) => Some("Block"),
        (mode, true) => return Err(Error::Modes(mode.to_owned())),
        ("filesystem", false) => Some("Filesystem"),
        (mode, false) => return Err(Error::Mode(mode.to_owned())),
    };
    if archive && mode == Some("Block") { Err(Error::ArchiveOnBlock) } else { Ok(mode) }
}

fn size(arguments: &Arguments) -> Result<Option<Quantity>, Error> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let text = match (given(&arguments.size), given(&arguments.pvc_size)) {
        (Some(one), Some(other)) if one != other => return Err(Error::Sizes),
        (size, pvc_size) => size.or(pvc_size),
    };
    let Some(text) = text else { return Ok(None) };
    match Amount::parse(&text) {
        Ok(amount) if !amount.is_zero() && !amount.is_negative() => Ok(Some(Quantity(text))),
        Ok(_) => Err(Error::Size(text, "it must be more than nothing".to_owned())),
        Err(error) => Err(Error::Size(text, error.to_string())),
    }
}

fn default_labels(arguments: &Arguments) -> Result<BTreeMap<String, String>, Error> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let mut all = BTreeMap::new();
    for (flag, name, kind, name_label, kind_label) in [
        (
            "default-instancetype",
            given(&arguments.default_instancetype),
            given(&arguments.default_instancetype_kind),
            labels::DEFAULT_INSTANCETYPE,
            labels::DEFAULT_INSTANCETYPE_KIND,
        ),
        (
            "default-preference",
            given(&arguments.default_preference),
            given(&arguments.default_preference_kind),
            labels::DEFAULT_PREFERENCE,
            labels::DEFAULT_PREFERENCE_KIND,
        ),
    ] {
        if name.is_none() && kind.is_some() {
            return Err(Error::KindOnly(flag));
        }
        all.extend(name.map(|name| (name_label.to_owned(), name)));
        all.extend(kind.map(|kind| (kind_label.to_owned(), kind)));
    }
    Ok(all)
}

/// The flags about a volume that is created, where none is.
fn idle(arguments: &Arguments) -> Option<String> {
    let settings = [
        ("--storage-class", arguments.storage_class.is_some()),
        ("--access-mode", arguments.access_mode.is_some()),
        ("--volume-mode", arguments.volume_mode.is_some()),
    ];
    let given = settings.into_iter().filter(|(_, given)| arguments.no_create && *given);
    let flags: Vec<&str> = given.map(|(flag, _)| flag).collect();
    commands::idle(&flags, "with --no-create")
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
