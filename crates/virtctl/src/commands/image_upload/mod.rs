//! `image-upload`: a disk image from this machine to a claim, by way of the data importer.

mod claim;
mod importer;
mod objects;
mod plan;
mod proxy;
mod steps;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use self::plan::Plan;
use self::steps::Upload;
use crate::connect::Connect;
use crate::output::{note, say};
use crate::transfer::progress::Progress;
use crate::transfer::upload::{Send, upload};
use crate::transfer::{Client, Trust};

/// How long to wait before the second attempt; later ones wait longer.
const PAUSE: Duration = Duration::from_millis(500);

/// Upload a disk image or an archive to a DataVolume or a claim.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What to upload to: dv or pvc
    #[arg(value_name = "KIND")]
    pub kind: Option<String>,
    /// Its name
    #[arg(value_name = "NAME")]
    pub target: Option<String>,
    /// Believe whoever answers, without a look at certificates
    #[arg(long)]
    pub insecure: bool,
    /// Address of the upload proxy; the importer's configuration tells if left out
    #[arg(long, value_name = "URL")]
    pub uploadproxy_url: Option<String>,
    /// Deprecated: name the claim as an argument
    #[arg(long, hide = true)]
    pub pvc_name: Option<String>,
    /// Deprecated: --size
    #[arg(long, hide = true)]
    pub pvc_size: Option<String>,
    /// Size of the volume to create, as in 10Gi
    #[arg(long, value_name = "QUANTITY")]
    pub size: Option<String>,
    /// Storage class of the volume to create
    #[arg(long, value_name = "CLASS")]
    pub storage_class: Option<String>,
    /// Access mode of the volume to create
    #[arg(long, value_name = "MODE")]
    pub access_mode: Option<String>,
    /// Deprecated: --volume-mode block
    #[arg(long, hide = true)]
    pub block_volume: bool,
    /// Mode of the volume to create: block or filesystem; that of the storage class if left out
    #[arg(long, value_name = "MODE")]
    pub volume_mode: Option<String>,
    /// The disk image
    #[arg(long, value_name = "FILE")]
    pub image_path: Option<PathBuf>,
    /// The archive, which is unpacked onto the volume
    #[arg(long, value_name = "FILE")]
    pub archive_path: Option<PathBuf>,
    /// Use a volume that is there
    #[arg(long)]
    pub no_create: bool,
    /// Seconds to wait for the upload pod
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub wait_secs: u64,
    /// How often an upload that fails is tried again
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    pub retry: u32,
    /// Bind the volume before something uses it
    #[arg(long)]
    pub force_bind: bool,
    /// Also create a DataSource that points to the volume
    #[arg(long)]
    pub datasource: bool,
    /// Instance type that machines with this image get
    #[arg(long, value_name = "NAME")]
    pub default_instancetype: Option<String>,
    /// Kind of that instance type
    #[arg(long, value_name = "KIND")]
    pub default_instancetype_kind: Option<String>,
    /// Preference that machines with this image get
    #[arg(long, value_name = "NAME")]
    pub default_preference: Option<String>,
    /// Kind of that preference
    #[arg(long, value_name = "KIND")]
    pub default_preference_kind: Option<String>,
}

const EXAMPLES: &str = "  # Upload an image to a new DataVolume, with an instance type for its machines
  {program} image-upload dv fedora --size 10Gi --image-path fedora.qcow2 --default-instancetype u1.small

  # Upload an image to a claim that is there
  {program} image-upload pvc fedora --no-create --image-path fedora.qcow2

  # Upload through an address of the upload proxy
  {program} image-upload dv fedora --size 10Gi --image-path fedora.qcow2 --uploadproxy-url https://localhost:8443 --insecure

  # Upload an archive
  {program} image-upload dv files --size 1Gi --archive-path files.tar";

impl Arguments {
    /// Makes room for the image, sends it and waits until it is stored.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let (plan, warnings) = plan::of(&self)?;
        for warning in warnings {
            note!("{warning}");
        }
        let file = plan.file.display().to_string();
        let length = std::fs::metadata(&plan.file).with_context(|| format!("{file} cannot be read"))?;
        if !length.is_file() {
            bail!("{file} is not a file");
        }
        let session = connect.session().await?;
        importer::check(session).await?;
        let steps = Upload { session, plan: &plan };
        steps.make_room().await?;
        steps.wait_for_server().await?;
        let checksum = send(&steps, &plan, length.len()).await?;
        say!("SHA-256 of {file}: {checksum}");
        if plan.data_source {
            steps.point().await?;
        }
        say!(
            "Uploading data completed successfully, waiting for processing to complete, you can hit ctrl-c without \
             interrupting the progress"
        );
        steps.wait_for_processing().await?;
        say!("Uploading {file} completed successfully");
        Ok(ExitCode::SUCCESS)
    }
}

async fn send(steps: &Upload<'_>, plan: &Plan, length: u64) -> Result<String> {
    let base = match &plan.proxy {
        Some(url) => url.clone(),
        None => importer::proxy(steps.session).await?,
    };
    let base = proxy::with_scheme(&base);
    say!("Uploading data to {base}");
    let client = Client::new(if plan.insecure { &Trust::Anyone } else { &Trust::System })?;
    let uri = proxy::address(&client, &base, &steps.token().await.map_err(anyhow::Error::msg)?).await?;
    let send = Send { uri, file: &plan.file, length, retries: plan.retries, pause: PAUSE };
    let progress = Progress::new("Uploading:", Some(length));
    Ok(upload(&client, &send, || steps.token(), progress).await?)
}
