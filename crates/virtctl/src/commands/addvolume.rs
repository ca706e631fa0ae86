//! `addvolume`: plugs a disk into a running machine.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use http::Method;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kubevirt_api::names::groups;
use serde_json::{Value, json};

use super::dry_run_body;
use crate::connect::{Connect, Session};
use crate::contention;
use crate::failure::Failure;
use crate::output::say;
use crate::subresource::{Kind, escaped};

/// The most letters that the name of a disk has.
const LONGEST: usize = 63;

/// Add a volume to a running virtual machine.
///
/// The volume stays: it is also there after the next restart.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Attach a volume, with a serial number by which the guest can tell it:
  {program} addvolume fedora --volume-name=example-dv --serial=1234567890

  # Attach a volume whose name is too long for a disk:
  {program} addvolume fedora --volume-name=example-dv --disk-name=data

  # Attach a volume to the virtio bus, without the host's cache:
  {program} addvolume fedora --volume-name=example-dv --bus=virtio --cache=none")]
pub struct Arguments {
    /// The name of the machine
    #[arg(value_name = "VMI")]
    name: String,
    /// The DataVolume or PersistentVolumeClaim to attach
    #[arg(long, value_name = "NAME")]
    volume_name: String,
    /// Name of the disk and its volume in the machine; the name of what is attached if not given
    #[arg(long, value_name = "NAME")]
    disk_name: Option<String>,
    /// Serial number of the disk, by which the guest can tell it; the disk's name if not given
    #[arg(long)]
    serial: Option<String>,
    /// How writes are cached: none, writethrough or writeback
    #[arg(long)]
    cache: Option<String>,
    /// How the guest sees it: disk or lun
    #[arg(long, value_name = "TYPE", default_value = "disk")]
    disk_type: String,
    /// The bus of the disk: scsi or virtio
    #[arg(long, default_value = "scsi")]
    bus: String,
    /// Has no effect any more: volumes always stay
    #[arg(long)]
    persist: bool,
    /// Only check: nothing is changed
    #[arg(long)]
    dry_run: bool,
}

impl Arguments {
    /// Finds out what the volume is and asks for it to be plugged in.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let disk = self.disk()?;
        let session = connect.session().await?;
        let source = source(session, &self.volume_name).await.context("error adding volume")?;
        let mut body = dry_run_body(self.dry_run);
        body["name"] = disk["name"].clone();
        body["disk"] = disk;
        body["volumeSource"] = source;
        ask(session, &self.name, "addvolume", &body).await.context("error adding volume")?;
        say!("Successfully submitted add volume request to VM {} for volume {}", self.name, self.volume_name);
        Ok(ExitCode::SUCCESS)
    }

    /// What the machine calls the disk, which is a word of its specification and no longer than those.
    fn disk_name(&self) -> Result<&str> {
        let own = self.disk_name.as_deref().filter(|name| !name.is_empty());
        let name = own.unwrap_or(&self.volume_name);
        if name.len() <= LONGEST {
            return Ok(name);
        }
        if own.is_some() {
            bail!("Invalid disk name {name}, must not exceed {LONGEST} characters");
        }
        let what = format!("Invalid volume name {name}, must not exceed {LONGEST} characters");
        Err(Failure::new(what, "Give it a shorter name in the machine with --disk-name.").into())
    }

    fn disk(&self) -> Result<Value> {
        let name = self.disk_name()?;
        let bus = self.bus.as_str();
        let mut disk = match (self.disk_type.as_str(), bus) {
            ("disk", "scsi" | "virtio") => json!({ "disk": { "bus": bus } }),
            ("disk", _) => {
                bail!("Invalid bus type '{bus}' for disk. Only 'scsi' and 'virtio' are supported.")
            }
            ("lun", "scsi") => json!({ "lun": { "bus": bus } }),
            ("lun", _) => bail!("Invalid bus type '{bus}' for LUN disk. Only 'scsi' bus is supported."),
            (other, _) => {
                bail!("Invalid disk type '{other}'. Only LUN and Disk are supported: use lun or disk.")
            }
        };
        disk["name"] = name.into();
        disk["serial"] = self.serial.as_deref().filter(|serial| !serial.is_empty()).unwrap_or(name).into();
        match self.cache.as_deref() {
            None | Some("") => {}
            Some(cache @ ("none" | "writethrough" | "writeback")) => disk["cache"] = cache.into(),
            Some(other) => {
                bail!("error adding volume, invalid cache value {other}; use none, writethrough or writeback")
            }
        }
        Ok(disk)
    }
}

/// A data volume if there is one by that name, else a claim.
async fn source(session: &Session, name: &str) -> Result<Value> {
    let (namespace, escaped) = (escaped(&session.namespace), escaped(name));
    let path = format!("/apis/{}/v1beta1/namespaces/{namespace}/datavolumes/{escaped}", groups::CDI);
    if session.call(Method::GET, &path, None).await.is_ok() {
        return Ok(json!({ "dataVolume": { "name": name, "hotpluggable": true } }));
    }
    let claims = session.api::<PersistentVolumeClaim>(None);
    if claims.get_opt(name).await?.is_some() {
        return Ok(json!({ "persistentVolumeClaim": { "claimName": name, "hotpluggable": true } }));
    }
    let what = format!("Volume {name} is not a DataVolume or PersistentVolumeClaim");
    Err(Failure::new(what, "See what there is with `kubectl get pvc`.").into())
}

/// Asks the machine, or an instance that belongs to none.
pub async fn ask(session: &Session, name: &str, verb: &str, body: &Value) -> Result<()> {
    let ask = || async {
        let done = session.put(Kind::Vm, &session.namespace, name, verb, Some(body)).await;
        match done {
            Err(error) if error.is_not_found() => {
                session.put(Kind::Vmi, &session.namespace, name, verb, Some(body)).await
            }
            done => done,
        }
    };
    contention::overcome(ask).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(disk_type: &str, bus: &str, cache: &str) -> Arguments {
        Arguments {
            name: "vm".into(),
            volume_name: "data".into(),
            disk_name: None,
            serial: None,
            cache: (!cache.is_empty()).then(|| cache.to_owned()),
            disk_type: disk_type.into(),
            bus: bus.into(),
            persist: false,
            dry_run: false,
        }
    }

    #[test]
    fn the_disk_is_what_the_flags_say() {
        for (disk_type, bus, cache, expected) in [
            ("disk", "scsi", "", Some(json!({"name": "data", "serial": "data", "disk": {"bus": "scsi"}}))),
            (
                "disk",
                "virtio",
                "none",
                Some(json!({"name": "data", "serial": "data", "cache": "none", "disk": {"bus": "virtio"}})),
            ),
            ("lun", "scsi", "", Some(json!({"name": "data", "serial": "data", "lun": {"bus": "scsi"}}))),
            ("lun", "virtio", "", None),
            ("disk", "sata", "", None),
            ("cdrom", "scsi", "", None),
            ("disk", "scsi", "unsafe", None),
        ] {
            assert_eq!(arguments(disk_type, bus, cache).disk().ok(), expected, "{disk_type} {bus} {cache}");
        }
    }

    #[test]
    fn a_disk_is_named_by_its_volume_or_as_it_was_asked_for() {
        let long = "a".repeat(64);
        for (volume, disk_name, serial, expected) in [
            ("data", None, None, Ok(("data", "data"))),
            ("data", Some(""), Some(""), Ok(("data", "data"))),
            ("data", None, Some("1234"), Ok(("data", "1234"))),
            ("data", Some("b"), None, Ok(("b", "b"))),
            ("data", Some("b"), Some("1234"), Ok(("b", "1234"))),
            (&long, Some("b"), None, Ok(("b", "b"))),
            (&long, None, None, Err("Invalid volume name")),
            ("data", Some(&long), None, Err("Invalid disk name")),
        ] {
            let arguments = Arguments {
                volume_name: volume.to_owned(),
                disk_name: disk_name.map(str::to_owned),
                serial: serial.map(str::to_owned),
                ..arguments("disk", "scsi", "")
            };
            match (arguments.disk(), expected) {
                (Ok(disk), Ok((name, serial))) => {
                    assert_eq!((&disk["name"], &disk["serial"]), (&json!(name), &json!(serial)));
                }
                (Err(error), Err(words)) => assert!(error.to_string().starts_with(words), "{error}"),
                (found, _) => panic!("{volume} {disk_name:?} {serial:?}: {found:?}"),
            }
        }
    }
}
