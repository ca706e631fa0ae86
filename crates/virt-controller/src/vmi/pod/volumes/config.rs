//! ConfigMaps, Secrets and fields of the pod that guests see, and what the launcher needs to prepare a guest.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, DownwardAPIVolumeSource, LocalObjectReference, SecretVolumeSource, Volume,
};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::access_credentials::AccessCredential;
use kubevirt_api::vmi::volumes::Volume as VmiVolume;
use kubevirt_domain::Layout;
use kubevirt_domain::layout::Iso;

use super::super::instance;
use super::{Volumes, part, read_only};

/// Adds them.
pub(super) fn add(vmi: &VirtualMachineInstance, layout: &Layout, all: &mut Volumes) {
    for volume in instance::volumes(vmi) {
        files(vmi, volume, layout, all);
        sysprep(volume, layout, all);
        cloud_init(volume, layout, all);
    }
    credentials(vmi, layout, all);
}

/// A volume whose files become a disk of the guest, or a directory that another container serves.
fn files(vmi: &VirtualMachineInstance, volume: &VmiVolume, layout: &Layout, all: &mut Volumes) {
    let name = volume.name.clone();
    let (source, iso) = if let Some(own) = &volume.secret {
        let source = SecretVolumeSource { optional: own.optional, ..secret_source(own.secret_name.clone()) };
        (Volume { name, secret: Some(source), ..Volume::default() }, Iso::Secret)
    } else if let Some(own) = &volume.config_map {
        let source = ConfigMapVolumeSource {
            optional: own.optional,
            name: own.name.clone().unwrap_or_default(),
            ..ConfigMapVolumeSource::default()
        };
        (Volume { name, config_map: Some(source), ..Volume::default() }, Iso::ConfigMap)
    } else if let Some(own) = &volume.downward_api {
        let source =
            DownwardAPIVolumeSource { items: own.fields.clone(), ..DownwardAPIVolumeSource::default() };
        (Volume { name, downward_api: Some(source), ..Volume::default() }, Iso::DownwardApi)
    } else {
        return;
    };
    all.volumes.push(source);
    let firmware = vmi.spec.domain.firmware.as_ref().and_then(|firmware| firmware.acpi.as_ref());
    let tables = firmware.map(|acpi| [&acpi.slic_name_ref, &acpi.msdm_name_ref]);
    let is_table = tables.into_iter().flatten().any(|table| table.as_ref() == Some(&volume.name));
    let mut disks = vmi.spec.domain.devices.disks.iter().flatten();
    if is_table || disks.any(|disk| disk.name == volume.name) {
        all.mounts.push(read_only(&volume.name, &layout.iso_source(iso, &volume.name)));
    }
}

fn sysprep(volume: &VmiVolume, layout: &Layout, all: &mut Volumes) {
    let Some(own) = &volume.sysprep else { return };
    let named = Volume { name: volume.name.clone(), ..Volume::default() };
    let source = match (&own.secret, &own.config_map) {
        (Some(secret), _) => Volume { secret: Some(secret_source(Some(secret.name.clone()))), ..named },
        (None, Some(map)) => {
            let source = ConfigMapVolumeSource { name: map.name.clone(), ..ConfigMapVolumeSource::default() };
            Volume { config_map: Some(source), ..named }
        }
        (None, None) => return,
    };
    all.volumes.push(source);
    all.mounts.push(read_only(&volume.name, &layout.iso_source(Iso::Sysprep, &volume.name)));
}

/// Secrets with what cloud-init does in the guest; either spelling of their keys is taken.
fn cloud_init(volume: &VmiVolume, layout: &Layout, all: &mut Volumes) {
    let (user, network) = if let Some(own) = &volume.cloud_init_no_cloud {
        (&own.secret_ref, &own.network_data_secret_ref)
    } else if let Some(own) = &volume.cloud_init_config_drive {
        (&own.secret_ref, &own.network_data_secret_ref)
    } else {
        return;
    };
    let mut add = |secret: &Option<LocalObjectReference>, end: &str, keys: [&str; 2]| {
        let Some(secret) = secret else { return };
        let name = format!("{}-{end}", volume.name);
        for key in keys {
            let path = format!("{}/{key}", layout.secret(&volume.name));
            let mut mount = part(&name, key, &path);
            mount.read_only = Some(true);
            all.mounts.push(mount);
        }
        let source = Some(secret_source(Some(secret.name.clone())));
        all.volumes.push(Volume { name, secret: source, ..Volume::default() });
    };
    add(user, "udata", ["userdata", "userData"]);
    add(network, "ndata", ["networkdata", "networkData"]);
}

/// Keys and passwords that are put into the guest. A Secret may be named more than once.
fn credentials(vmi: &VirtualMachineInstance, layout: &Layout, all: &mut Volumes) {
    let mut seen: Vec<&str> = Vec::new();
    for secret in vmi.spec.access_credentials.iter().flatten().filter_map(secret_of) {
        if seen.contains(&secret) {
            continue;
        }
        seen.push(secret);
        let name = format!("{secret}-access-cred");
        all.mounts.push(read_only(&name, &layout.access_credential(secret)));
        let source = Some(secret_source(Some(secret.to_owned())));
        all.volumes.push(Volume { name, secret: source, ..Volume::default() });
    }
}

fn secret_of(credential: &AccessCredential) -> Option<&str> {
    let key = credential.ssh_public_key.as_ref().and_then(|key| key.source.secret.as_ref());
    let password = credential.user_password.as_ref().and_then(|password| password.source.secret.as_ref());
    key.or(password).map(|secret| secret.secret_name.as_str()).filter(|name| !name.is_empty())
}

fn secret_source(name: Option<String>) -> SecretVolumeSource {
    SecretVolumeSource { secret_name: name, ..SecretVolumeSource::default() }
}
