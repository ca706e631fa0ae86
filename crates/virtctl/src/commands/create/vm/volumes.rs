//! Volumes that exist already: container disks, claims and answer files.

use k8s_openapi::api::core::v1::LocalObjectReference;
use kubevirt_api::vmi::disks::Disk;
use kubevirt_api::vmi::volumes::{
    ContainerDiskSource, PersistentVolumeClaimVolumeSource, SysprepSource, Volume,
};

use super::build::Draft;
use crate::commands::create::params::{self, FlagError, Params};

const CONTAINER_DISK: &str = "volume-containerdisk";
const CLAIM: &str = "volume-pvc";
const SYSPREP: &str = "volume-sysprep";
const SYSPREP_VOLUME: &str = "sysprepdisk";

/// The parameters of a volume with a source.
struct Sourced {
    name: Option<String>,
    source: String,
    boot_order: Option<u32>,
}

impl Sourced {
    fn parse(flag: &'static str, text: &str) -> Result<Self, FlagError> {
        let mut params = Params::parse(flag, text)?;
        let (name, source) = (params.text("name"), params.text("src"));
        let boot_order = params.number("bootorder")?;
        params.finish()?;
        let source = source.ok_or_else(|| params.problem("src must be specified"))?;
        Ok(Self { name, source, boot_order })
    }
}

/// Adds container disks, then claims.
pub(super) fn add(draft: &mut Draft<'_>) -> Result<(), FlagError> {
    for (index, text) in draft.arguments.volume_containerdisk.iter().enumerate() {
        let Sourced { name, source, boot_order } = Sourced::parse(CONTAINER_DISK, text)?;
        let name = name.unwrap_or_else(|| format!("{}-containerdisk-{index}", draft.name));
        let container_disk = ContainerDiskSource { image: source, ..Default::default() };
        let volume = Volume { name, container_disk: Some(container_disk), ..Default::default() };
        draft.add_volume(CONTAINER_DISK, volume, boot_order)?;
    }
    for text in &draft.arguments.volume_pvc {
        let Sourced { name, source, boot_order } = Sourced::parse(CLAIM, text)?;
        let claim_name = local(CLAIM, "pvc", &source)?;
        let name = name.unwrap_or_else(|| claim_name.clone());
        let claim = PersistentVolumeClaimVolumeSource { claim_name, ..Default::default() };
        let volume = Volume { name, persistent_volume_claim: Some(claim), ..Default::default() };
        draft.add_volume(CLAIM, volume, boot_order)?;
    }
    Ok(())
}

/// Adds the answer file for Windows.
pub(super) fn add_sysprep(draft: &mut Draft<'_>) -> Result<(), FlagError> {
    let Some(text) = &draft.arguments.volume_sysprep else { return Ok(()) };
    let mut params = Params::parse(SYSPREP, text)?;
    let (source, kind) = (params.text("src"), params.text("type"));
    params.finish()?;
    let source = source.ok_or_else(|| params.problem("src must be specified"))?;
    let object = Some(LocalObjectReference { name: local(SYSPREP, "configmap or secret", &source)? });
    let sysprep = match kind.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None | Some("configmap") => SysprepSource { config_map: object, secret: None },
        Some("secret") => SysprepSource { secret: object, config_map: None },
        Some(_) => {
            let kind = kind.unwrap_or_default();
            let problem =
                format!("invalid sysprep source type \"{kind}\", supported values are: configmap, secret");
            return Err(params.problem(problem));
        }
    };
    let volume = Volume { name: SYSPREP_VOLUME.into(), sysprep: Some(sysprep), ..Default::default() };
    draft.add_volume(SYSPREP, volume, None)
}

/// The name of an object that must be in the machine's own namespace.
pub(super) fn local(flag: &'static str, what: &str, text: &str) -> Result<String, FlagError> {
    let (namespace, name) =
        params::prefixed(text).map_err(|problem| FlagError::new(flag, format!("src invalid: {problem}")))?;
    match namespace {
        None => Ok(name.to_owned()),
        Some(_) => {
            Err(FlagError::new(flag, format!("not allowed to specify namespace of {what} \"{name}\"")))
        }
    }
}

impl Draft<'_> {
    /// The volume of this name.
    pub(super) fn volume(&self, name: &str) -> Option<&Volume> {
        self.instance.volumes.iter().flatten().find(|volume| volume.name == name)
    }

    /// Adds a volume and, if its place in the boot order is given, a disk that has it.
    pub(super) fn add_volume(
        &mut self,
        flag: &'static str,
        volume: Volume,
        boot_order: Option<u32>,
    ) -> Result<(), FlagError> {
        let name = volume.name.clone();
        if !params::is_label(&name) {
            let problem = format!(
                "invalid name \"{name}\": at most 63 lower case letters, digits and '-' are allowed, with a letter or \
                 digit at both ends"
            );
            return Err(FlagError::new(flag, problem));
        }
        if self.volume(&name).is_some() {
            return Err(FlagError::new(flag, format!("there is already a volume with name \"{name}\"")));
        }
        self.instance.volumes.get_or_insert_default().push(volume);
        match boot_order {
            Some(order) => self.boot(flag, name, order),
            None => Ok(()),
        }
    }

    fn boot(&mut self, flag: &'static str, name: String, order: u32) -> Result<(), FlagError> {
        if order == 0 {
            return Err(FlagError::new(flag, "bootorder must be greater than 0"));
        }
        if self.boot_orders.contains_key(&order) {
            return Err(FlagError::new(flag, format!("bootorder {order} was specified multiple times")));
        }
        let disk = Disk { name: name.clone(), boot_order: Some(order.into()), ..Default::default() };
        self.instance.domain.devices.disks.get_or_insert_default().push(disk);
        self.boot_orders.insert(order, name);
        Ok(())
    }
}
