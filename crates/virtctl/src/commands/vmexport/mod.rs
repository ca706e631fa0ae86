//! `vmexport`: disks and manifests of machines as files.

mod download;
mod export;
mod forward;
mod links;
mod plan;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use kube::api::{DeleteParams, PostParams};
use kubevirt_api::export::VirtualMachineExport;

pub use self::download::{After, Download, Format, Output, Route, What};
pub use self::export::{New, claim};
use self::plan::Plan;
use super::tell_idle;
use crate::connect::{Connect, Session};
use crate::failure::Failure;
use crate::names;
use crate::output::say;

/// Export the disks of a virtual machine, a snapshot, a claim or a template.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What to do: create, delete or download
    #[arg(value_name = "ACTION")]
    pub action: String,
    /// Name of the export
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Export this virtual machine
    #[arg(long, conflicts_with_all = ["snapshot", "pvc", "vmtemplate"])]
    pub vm: Option<String>,
    /// Export this snapshot of a virtual machine
    #[arg(long, conflicts_with_all = ["pvc", "vmtemplate"])]
    pub snapshot: Option<String>,
    /// Export this claim
    #[arg(long, conflicts_with = "vmtemplate")]
    pub pvc: Option<String>,
    /// Export this template
    #[arg(long, value_name = "TEMPLATE")]
    pub vmtemplate: Option<String>,
    /// File to download to, or - for standard output
    #[arg(long, value_name = "FILE")]
    pub output: Option<String>,
    /// Volume to download, if there are several
    #[arg(long)]
    pub volume: Option<String>,
    /// Format of the download: gzip, raw (unpacked on the way) or oci
    #[arg(long)]
    pub format: Option<String>,
    /// Believe whoever answers, without a look at certificates
    #[arg(long)]
    pub insecure: bool,
    /// Keep the export after the download
    #[arg(long, conflicts_with = "delete_vme")]
    pub keep_vme: bool,
    /// Delete the export after the download, even if it was there before
    #[arg(long)]
    pub delete_vme: bool,
    /// How long the export lives, as in 4h; two hours if left out
    #[arg(long, value_name = "TIME")]
    pub ttl: Option<String>,
    /// Format of the manifest: yaml or json
    #[arg(long, value_name = "FORMAT")]
    pub manifest_output_format: Option<String>,
    /// Host and port to use instead of the export's external address
    #[arg(long, value_name = "HOST")]
    pub service_url: Option<String>,
    /// Go through the cluster's API server instead of an external address
    #[arg(long)]
    pub port_forward: bool,
    /// Port on this machine for --port-forward; any if 0
    #[arg(long, value_name = "PORT", default_value = "0", hide_default_value = true)]
    pub local_port: String,
    /// How often a download that the server refuses is tried again; one that breaks off goes on in any case
    #[arg(long, value_name = "COUNT", default_value_t = 0, hide_default_value = true)]
    pub retry: i64,
    /// With --manifest: also the secret that the importer needs to fetch the disks
    #[arg(long)]
    pub include_secret: bool,
    /// Download the manifests instead of a disk
    #[arg(long)]
    pub manifest: bool,
    /// Labels of the export and its pod, as in KEY=VALUE; several with commas or several times
    #[arg(long, value_delimiter = ',', value_name = "LABELS")]
    pub labels: Vec<String>,
    /// Annotations of the export and its pod, as in KEY=VALUE; several with commas or several times
    #[arg(long, value_delimiter = ',', value_name = "ANNOTATIONS")]
    pub annotations: Vec<String>,
    /// How long to wait for the export to be ready, as in 5m; two minutes if left out
    #[arg(long, value_name = "TIME")]
    pub readiness_timeout: Option<String>,
}

const EXAMPLES: &str = "  # Export a virtual machine that does not run, and one of its snapshots
  {program} vmexport create myexport --vm myvm
  {program} vmexport create myexport --snapshot mysnapshot

  # Download a disk from an export, or from an export that lasts as long as the download
  {program} vmexport download myexport --volume root --output disk.img.gz
  {program} vmexport download myexport --vm myvm --volume root --format raw --output disk.img

  # The same from a cluster without an ingress
  {program} vmexport download myexport --vm myvm --output disk.img.gz --port-forward

  # The manifests, with the secret that another cluster needs to import the disks
  {program} vmexport download myexport --vm myvm --manifest --include-secret

  # Delete an export
  {program} vmexport delete myexport";

impl Arguments {
    /// Does what is asked with the export.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let plan = plan::of(&self)?;
        let idle: Vec<String> = plan::idle(&self, &plan).iter().map(|flag| format!("--{flag}")).collect();
        tell_idle(&idle, &format!("on this `vmexport {}`", self.action));
        let session = connect.session().await?;
        match plan {
            Plan::Create(new) => {
                if !create(session, &new).await? {
                    return Err(exists(&session.namespace, &new.name).into());
                }
                say!("{}", created(session, &new.name));
            }
            Plan::Delete(name) => say!("{}", delete(session, &name).await?),
            Plan::Download(download) => download.run(session).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn exists(namespace: &str, name: &str) -> Failure {
    let next = format!(
        "`virtctl vmexport download {name}` uses it, and `virtctl vmexport delete {name}` makes room."
    );
    Failure::new(format!("VirtualMachineExport '{namespace}/{name}' already exists"), next)
}

fn created(session: &Session, name: &str) -> String {
    format!("VirtualMachineExport '{}/{name}' created successfully", session.namespace)
}

/// Creates an export and the secret with its token; false if there is one of that name.
async fn create(session: &Session, new: &New) -> Result<bool> {
    let exports = session.api::<VirtualMachineExport>(None);
    let export = new.export(&session.namespace);
    let made = match exports.create(&PostParams::default(), &export).await {
        Ok(made) => made,
        Err(kube::Error::Api(status)) if status.code == 409 => return Ok(false),
        Err(error) => return Err(error).context("the export cannot be created"),
    };
    let secret = export::secret(&made, &names::token(export::TOKEN_LENGTH)?);
    match session.api(None).create(&PostParams::default(), &secret).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(true),
        other => other.context("the secret with the export's token cannot be created").map(|_| true),
    }
}

/// Deletes an export; what became of it.
async fn delete(session: &Session, name: &str) -> Result<String> {
    let exports = session.api::<VirtualMachineExport>(None);
    let namespace = &session.namespace;
    match exports.delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(format!("VirtualMachineExport '{namespace}/{name}' deleted successfully")),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Ok(format!("VirtualMachineExport '{namespace}/{name}' does not exist"))
        }
        Err(error) => Err(error).context("the export cannot be deleted"),
    }
}
