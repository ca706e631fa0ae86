//! Which of the links of an export leads to what is wanted.

use kubevirt_api::export::{
    ExportLink, ExportManifestType, ExportPhase, ExportVolume, ExportVolumeFormat, VirtualMachineExport,
};

use super::download::{Format, Route};

/// Why there is no link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The export has no volumes.
    #[error("unable to access the volume info from '{0}' VirtualMachineExport")]
    NoVolumes(String),
    /// The export has no manifests.
    #[error("unable to access the manifest info from '{0}' VirtualMachineExport")]
    NoManifests(String),
    /// More than one volume, and none named.
    #[error(
        "detected more than one downloadable volume in '{0}' VirtualMachineExport: Select the expected volume using the \
         --volume flag: {1}"
    )]
    Several(String, String),
    /// No volume of that name.
    #[error("there is no volume {volume} in '{export}' VirtualMachineExport; it has {known}")]
    Unknown {
        /// What is asked for.
        volume: String,
        /// Of which export.
        export: String,
        /// What there is.
        known: String,
    },
    /// The volume is not served in any format that can be downloaded as one file.
    #[error("unable to get a valid URL from '{0}' VirtualMachineExport")]
    NoFormat(String),
    /// The kind of manifest is not there.
    #[error("{1} export format not available for '{0}'")]
    NoManifest(String, String),
    /// The address makes no sense.
    #[error("{0} is not an address")]
    Address(String),
}

/// How far an export is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Its links can be used.
    Ready,
    /// It waits for this.
    Waiting(String),
    /// It will never be ready.
    Never(String),
}

/// Whether an export can be downloaded from this way.
pub fn readiness(export: &VirtualMachineExport, route: &Route) -> Readiness {
    let name = export.metadata.name.as_deref().unwrap_or_default();
    let status = export.status.clone().unwrap_or_default();
    match status.phase {
        Some(ExportPhase::Ready) => {}
        Some(ExportPhase::Terminated | ExportPhase::Skipped) => {
            let words = why(export).unwrap_or_else(|| "its source cannot be served".to_owned());
            return Readiness::Never(words);
        }
        _ => return Readiness::Waiting(format!("waiting for VM Export {name} status to be ready...")),
    }
    let (links, where_) = match route {
        Route::External => (status.links.and_then(|links| links.external), "external"),
        _ => (status.links.and_then(|links| links.internal), "internal"),
    };
    match links {
        Some(_) => Readiness::Ready,
        None => Readiness::Waiting(format!("waiting for VM Export {name} {where_} links to be available...")),
    }
}

/// What the export says about itself.
pub fn why(export: &VirtualMachineExport) -> Option<String> {
    let conditions = export.status.as_ref()?.conditions.as_ref()?;
    let mut said = conditions.iter().filter_map(|condition| condition.message.clone());
    said.rfind(|message| !message.is_empty())
}

/// The links of this way.
pub fn on<'a>(export: &'a VirtualMachineExport, route: &Route) -> Option<&'a ExportLink> {
    let links = export.status.as_ref()?.links.as_ref()?;
    match route {
        Route::External => links.external.as_ref(),
        _ => links.internal.as_ref(),
    }
}

/// The address of a volume, and whether it comes packed.
pub fn volume(
    export: &VirtualMachineExport,
    route: &Route,
    name: Option<&str>,
    format: Format,
) -> Result<(String, bool), Error> {
    let full = full_name(export);
    let volumes = on(export, route).and_then(|links| links.volumes.as_deref()).unwrap_or_default();
    let known = || volumes.iter().map(|volume| volume.name.as_str()).collect::<Vec<_>>().join(", ");
    let volume =
        match (name, volumes) {
            (_, []) => return Err(Error::NoVolumes(full)),
            (None, [one]) => one,
            (None, _) => return Err(Error::Several(full, known())),
            (Some(name), all) => all.iter().find(|volume| volume.name == name).ok_or_else(|| {
                Error::Unknown { volume: name.to_owned(), export: full.clone(), known: known() }
            })?,
        };
    let (url, packed) = best(volume, format).ok_or(Error::NoFormat(full))?;
    Ok((at(url, route)?, packed))
}

/// The packed form where there is one: it is less to carry.
fn best(volume: &ExportVolume, format: Format) -> Option<(&str, bool)> {
    let of = |wanted: ExportVolumeFormat| {
        let mut all = volume.formats.iter().flatten();
        all.find(|link| link.format == wanted).map(|link| link.url.as_str())
    };
    let packed =
        of(ExportVolumeFormat::Gzip).or_else(|| of(ExportVolumeFormat::TarGz)).map(|url| (url, true));
    match format {
        Format::Gzip => packed,
        Format::Raw | Format::Default => {
            packed.or_else(|| of(ExportVolumeFormat::Raw).map(|url| (url, false)))
        }
    }
}

/// The address of a kind of manifest.
pub fn manifest(
    export: &VirtualMachineExport,
    route: &Route,
    kind: &ExportManifestType,
) -> Result<String, Error> {
    let full = full_name(export);
    let all = on(export, route).and_then(|links| links.manifests.as_deref()).unwrap_or_default();
    if all.is_empty() {
        return Err(Error::NoManifests(full));
    }
    let link = all.iter().find(|manifest| manifest.type_ == *kind);
    let link = link.ok_or_else(|| Error::NoManifest(full, kind.as_str().to_uppercase()))?;
    at(&link.url, route)
}

/// The address with the host that the user knows better.
fn at(url: &str, route: &Route) -> Result<String, Error> {
    let Route::Service(host) = route else { return Ok(url.to_owned()) };
    let wrong = || Error::Address(url.to_owned());
    let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
    let path = rest.find('/').map_or("", |start| &rest[start..]);
    Ok(format!("{scheme}://{host}{path}"))
}

fn full_name(export: &VirtualMachineExport) -> String {
    let metadata = &export.metadata;
    let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
    format!("{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default())
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
