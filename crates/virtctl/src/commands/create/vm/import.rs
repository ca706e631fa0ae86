//! Volumes that the data importer makes: `--volume-import` and the older flags that say the same.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::VolumeResourceRequirements;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubevirt_api::data_volume::{
    DataVolumeBlankImage, DataVolumeSource, DataVolumeSourceGcs, DataVolumeSourceHttp,
    DataVolumeSourceImageIo, DataVolumeSourcePvc, DataVolumeSourceRef, DataVolumeSourceRegistry,
    DataVolumeSourceS3, DataVolumeSourceSnapshot, DataVolumeSourceVddk, DataVolumeSpec, RegistryPullMethod,
    StorageSpec,
};
use kubevirt_api::vm::DataVolumeTemplate;
use kubevirt_api::vmi::volumes::{DataVolumeRef, Volume};

use super::build::Draft;
use crate::commands::create::params::{self, FlagError, Params};

const IMPORT: &str = "volume-import";

/// Adds the volumes of the older flags, then those of `--volume-import`.
pub(super) fn add(draft: &mut Draft<'_>, suffix: &mut dyn FnMut() -> String) -> Result<(), FlagError> {
    let arguments = draft.arguments;
    let older = [
        ("volume-datasource", "ds", &arguments.volume_datasource),
        ("volume-clone-pvc", "pvc", &arguments.volume_clone_pvc),
        ("volume-blank", "blank", &arguments.volume_blank),
    ];
    for (flag, kind, texts) in older {
        if !texts.is_empty() {
            draft.warnings.push(format!("Flag --{flag} has been deprecated, use flag --{IMPORT} instead"));
        }
        for text in texts {
            if text.is_empty() {
                return Err(FlagError::new(IMPORT, "params may not be empty"));
            }
            add_one(draft, &format!("type:{kind},{text}"), suffix)?;
        }
    }
    arguments.volume_import.iter().try_for_each(|text| add_one(draft, text, suffix))
}

fn add_one(draft: &mut Draft<'_>, text: &str, suffix: &mut dyn FnMut() -> String) -> Result<(), FlagError> {
    let mut params = Params::parse(IMPORT, text)?;
    let kind = params.required("type")?;
    let (name, boot_order) = (params.text("name"), params.number("bootorder")?);
    let size = params.quantity("size")?;
    let (mut spec, may_be_any_size) = source(&kind, &mut params)?;
    if size.is_none() && !may_be_any_size {
        return Err(params.problem("size must be specified"));
    }
    let resources = size.map(|size| VolumeResourceRequirements {
        requests: Some(BTreeMap::from([("storage".to_owned(), size)])),
        ..Default::default()
    });
    spec.storage = Some(StorageSpec { resources, ..Default::default() });
    let name = name.unwrap_or_else(|| format!("imported-volume-{}", suffix()));
    let data_volume = DataVolumeRef { name: name.clone(), ..Default::default() };
    let volume = Volume { name: name.clone(), data_volume: Some(data_volume), ..Default::default() };
    draft.add_volume(IMPORT, volume, boot_order)?;
    let metadata = Some(ObjectMeta { name: Some(name), ..Default::default() });
    let template = DataVolumeTemplate { metadata, spec, ..Default::default() };
    draft.spec.data_volume_templates.get_or_insert_default().push(template);
    Ok(())
}

/// Where the data comes from, and whether that also says how much it is.
fn source(kind: &str, params: &mut Params<'_>) -> Result<(DataVolumeSpec, bool), FlagError> {
    let from = match kind {
        "blank" => DataVolumeSource { blank: Some(DataVolumeBlankImage {}), ..Default::default() },
        "gcs" => DataVolumeSource { gcs: Some(gcs(params)?), ..Default::default() },
        "http" => DataVolumeSource { http: Some(http(params)?), ..Default::default() },
        "imageio" => DataVolumeSource { imageio: Some(imageio(params)?), ..Default::default() },
        "registry" => DataVolumeSource { registry: Some(registry(params)?), ..Default::default() },
        "s3" => DataVolumeSource { s3: Some(s3(params)?), ..Default::default() },
        "vddk" => DataVolumeSource { vddk: Some(vddk(params)?), ..Default::default() },
        "pvc" => {
            let (namespace, name) = elsewhere("pvc", params)?;
            return Ok((
                with(DataVolumeSource {
                    pvc: Some(DataVolumeSourcePvc { namespace, name }),
                    ..Default::default()
                }),
                true,
            ));
        }
        "snapshot" => {
            let (namespace, name) = elsewhere("snapshot", params)?;
            let snapshot = Some(DataVolumeSourceSnapshot { namespace, name });
            return Ok((with(DataVolumeSource { snapshot, ..Default::default() }), true));
        }
        "ds" => {
            let (namespace, name) = named(params)?;
            let source_ref = Some(DataVolumeSourceRef { kind: "DataSource".into(), namespace, name });
            return Ok((DataVolumeSpec { source_ref, ..Default::default() }, true));
        }
        other => {
            let problem = format!(
                "invalid volume import type \"{other}\", see help for supported values: blank, gcs, http, imageio, pvc, \
                 registry, s3, vddk, snapshot, ds"
            );
            return Err(params.problem(problem));
        }
    };
    params.finish()?;
    Ok((with(from), false))
}

fn with(source: DataVolumeSource) -> DataVolumeSpec {
    DataVolumeSpec { source: Some(source), ..Default::default() }
}

/// A parameter that the kind of source cannot do without.
fn needed(value: Option<String>, what: &str, kind: &str, params: &Params<'_>) -> Result<String, FlagError> {
    // An unknown parameter explains a missing one: a slip of the pen.
    params.finish()?;
    value.ok_or_else(|| params.problem(format!("{what} with {kind} volume source")))
}

fn gcs(params: &mut Params<'_>) -> Result<DataVolumeSourceGcs, FlagError> {
    let (url, secret_ref) = (params.text("url"), params.text("secretref"));
    Ok(DataVolumeSourceGcs { url: needed(url, "url is required", "gcs", params)?, secret_ref })
}

fn http(params: &mut Params<'_>) -> Result<DataVolumeSourceHttp, FlagError> {
    let url = params.text("url");
    let mut source = DataVolumeSourceHttp {
        secret_ref: params.text("secretref"),
        cert_config_map: params.text("certconfigmap"),
        extra_headers: params.texts("extraheaders"),
        secret_extra_headers: params.texts("secretextraheaders"),
        ..Default::default()
    };
    source.url = needed(url, "url is required", "http", params)?;
    Ok(source)
}

fn imageio(params: &mut Params<'_>) -> Result<DataVolumeSourceImageIo, FlagError> {
    let (url, disk) = (params.text("url"), params.text("diskid"));
    let (secret_ref, cert_config_map) = (params.text("secretref"), params.text("certconfigmap"));
    let (url, disk_id) = url.zip(disk).unzip();
    let url = needed(url, "url and diskid are both required", "imageio", params)?;
    let disk_id = disk_id.unwrap_or_default();
    Ok(DataVolumeSourceImageIo { url, disk_id, secret_ref, cert_config_map, ..Default::default() })
}

fn registry(params: &mut Params<'_>) -> Result<DataVolumeSourceRegistry, FlagError> {
    let source = DataVolumeSourceRegistry {
        url: params.text("url"),
        image_stream: params.text("imagestream"),
        pull_method: params.text("pullmethod").map(|method| RegistryPullMethod::from(method.as_str())),
        secret_ref: params.text("secretref"),
        cert_config_map: params.text("certconfigmap"),
        platform: None,
    };
    params.finish()?;
    if source.pull_method.as_ref().is_some_and(|method| !method.is_known()) {
        return Err(params.problem("pullmethod must be set to pod or node"));
    }
    if source.url.is_some() == source.image_stream.is_some() {
        return Err(params.problem("exactly one of url or imagestream must be defined"));
    }
    Ok(source)
}

fn s3(params: &mut Params<'_>) -> Result<DataVolumeSourceS3, FlagError> {
    let (url, secret_ref) = (params.text("url"), params.text("secretref"));
    let cert_config_map = params.text("certconfigmap");
    Ok(DataVolumeSourceS3 { url: needed(url, "url is required", "s3", params)?, secret_ref, cert_config_map })
}

fn vddk(params: &mut Params<'_>) -> Result<DataVolumeSourceVddk, FlagError> {
    let source = DataVolumeSourceVddk {
        url: params.text("url"),
        uuid: params.text("uuid"),
        thumbprint: params.text("thumbprint"),
        secret_ref: params.text("secretref"),
        backing_file: params.text("backingfile"),
        init_image_url: params.text("initimageurl"),
        extra_args: None,
    };
    let all = [
        ("url", &source.url),
        ("uuid", &source.uuid),
        ("thumbprint", &source.thumbprint),
        ("secretref", &source.secret_ref),
        ("backingfile", &source.backing_file),
    ];
    for (name, value) in all {
        needed(value.clone(), &format!("{name} is required"), "vddk", params)?;
    }
    Ok(source)
}

/// The object that `src` names, perhaps in another namespace.
fn named(params: &mut Params<'_>) -> Result<(Option<String>, String), FlagError> {
    let source = params.text("src");
    params.finish()?;
    let source = source.ok_or_else(|| params.problem("src must be specified"))?;
    let (namespace, name) =
        params::prefixed(&source).map_err(|problem| params.problem(format!("src invalid: {problem}")))?;
    Ok((namespace.map(str::to_owned), name.to_owned()))
}

/// The object that `src` names with its namespace, which cloning needs to know.
fn elsewhere(what: &str, params: &mut Params<'_>) -> Result<(String, String), FlagError> {
    let (namespace, name) = named(params)?;
    let namespace = namespace
        .ok_or_else(|| params.problem(format!("namespace of {what} \"{name}\" must be specified")))?;
    Ok((namespace, name))
}
