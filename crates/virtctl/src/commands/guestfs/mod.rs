//! `guestfs`: a shell with the tools of libguestfs beside a claim.

mod attach;
mod image;
mod pod;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::Method;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use kubevirt_api::names::groups;
use kubevirt_api::vm::VirtualMachine;

use self::pod::Identity;
use crate::connect::{Connect, Session};
use crate::failure::Failure;
use crate::output::say;
use crate::terminal::told_to_end;
use crate::wait;

/// How long the pod may take to start.
const START: Duration = Duration::from_secs(500);

/// Start a shell with the tools of libguestfs on a claim.
///
/// The claim is the directory /disk, or the device /dev/vda if it is a block volume.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The claim
    #[arg(value_name = "CLAIM")]
    pub pvc: String,
    /// Image with the tools; the cluster knows one if left out
    #[arg(long)]
    pub image: Option<String>,
    /// When the image is pulled: Always, Never or IfNotPresent
    #[arg(long, value_name = "POLICY", default_value = "IfNotPresent")]
    pub pull_policy: String,
    /// Whether the tools use KVM
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub kvm: bool,
    /// Run as root
    #[arg(long)]
    pub root: bool,
    /// User to run as; not with --root
    #[arg(long)]
    pub uid: Option<String>,
    /// Group to run as; only with --uid
    #[arg(long)]
    pub gid: Option<String>,
    /// Group that the claim's files belong to; not with --root
    #[arg(long = "fsGroup", value_name = "GID")]
    pub fs_group: Option<String>,
    /// Run where this virtual machine could run
    #[arg(long)]
    pub vm: Option<String>,
}

const EXAMPLES: &str = "  # Look into the disk of a virtual machine that does not run
  {program} guestfs my-claim

  # As root, on a node where the machine could run
  {program} guestfs my-claim --root --vm myvm";

impl Arguments {
    /// Creates the pod, talks to its shell and deletes it.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        if !["Always", "Never", "IfNotPresent"].contains(&self.pull_policy.as_str()) {
            bail!("Invalid pull policy: {}; use Always, Never or IfNotPresent", self.pull_policy);
        }
        let identity = Identity::of(&self)?;
        let session = connect.session().await?;
        let image = match self.image.clone().filter(|image| !image.is_empty()) {
            Some(image) => image,
            None => known_image(session).await?,
        };
        say!("Use image: {image}");
        let is_block = check_claim(session, &self.pvc).await?;
        let vm = match self.vm.as_deref().filter(|vm| !vm.is_empty()) {
            Some(vm) => Some(session.api::<VirtualMachine>(None).get(vm).await?),
            None => None,
        };
        let pod = pod::pod(&self, &image, &identity, is_block, vm.as_ref());
        say!("The PVC has been mounted at {}", if is_block { pod::DEVICE } else { pod::DIRECTORY });
        let pods = session.api::<Pod>(None);
        pods.create(&PostParams::default(), &pod).await.context("the pod cannot be created")?;
        let name = pod::name(&self.pvc);
        let talk = async {
            start(&pods, &name).await?;
            attach::attach(&pods, &name).await
        };
        let result = tokio::select! {
            result = talk => result,
            () = told_to_end() => Err(anyhow::anyhow!("interrupted")),
        };
        let deleted = pods.delete(&name, &DeleteParams::default()).await;
        result?;
        deleted.with_context(|| format!("the pod {name} cannot be deleted"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The image that belongs to the installation.
async fn known_image(session: &Session) -> Result<String> {
    let path = format!("/apis/{}/v1/guestfs", groups::SUBRESOURCES);
    let answer = session.call(Method::GET, &path, None).await;
    let known = answer.map_err(anyhow::Error::from).and_then(|answer| {
        let info = serde_json::from_slice(&answer).context("the answer cannot be understood")?;
        Ok(image::name(&info)?)
    });
    known.map_err(|error| {
        let what = format!("could not get guestfs image info: {error}");
        Failure::new(what, "Name an image with the tools of libguestfs with --image.").into()
    })
}

/// Whether the claim is a block volume; an error if it is not there or in use.
async fn check_claim(session: &Session, name: &str) -> Result<bool> {
    let found = session.api::<PersistentVolumeClaim>(None).get_opt(name).await?;
    let Some(claim) = found else {
        let next = "See what there is with `kubectl get pvc`; -n names another namespace.";
        return Err(Failure::new(format!("The PVC {name} doesn't exist"), next).into());
    };
    let pods = session.api::<Pod>(None).list(&ListParams::default()).await?;
    if let Some(user) = pods.items.iter().find(|user| pod::uses(user, name)) {
        let user = user.metadata.name.as_deref().unwrap_or_default();
        let next = format!(
            "Stop what uses it first: a machine with `virtctl stop`, or `kubectl delete pod {user}`."
        );
        return Err(Failure::new(format!("PVC {name} is used by another pod: {user}"), next).into());
    }
    Ok(claim.spec.and_then(|spec| spec.volume_mode).as_deref() == Some("Block"))
}

/// Waits until the shell runs.
async fn start(pods: &Api<Pod>, name: &str) -> Result<()> {
    let told = &std::cell::RefCell::new(String::new());
    let running = wait::until(START, || async move {
        let found = pods.get(name).await?;
        let state = pod::state(&found)?;
        let Some(words) = state else { return Ok(Some(())) };
        if *told.borrow() != words {
            say!("{words}");
            *told.borrow_mut() = words;
        }
        Ok(None)
    });
    match running.await? {
        Some(()) => Ok(()),
        None => {
            let what = format!("timeout in waiting for the containers to be started in pod {name}");
            Err(Failure::new(what, "See what the cluster says with `kubectl get events`.").into())
        }
    }
}
