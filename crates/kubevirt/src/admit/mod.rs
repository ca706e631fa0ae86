//! `kubevirt admit`: the verdict of admission, without a cluster.

mod words;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_admission::review::{Answer, Incoming, Steps, Surroundings, answer};
use kubevirt_admission::{ClusterConfig, KnownObjects, OwnAccounts};
use kubevirt_api::kubevirt::KubeVirt;
use serde_json::Value;

use crate::documents::{self, Document};

/// What `kubevirt admit` takes.
#[derive(Args)]
pub struct Arguments {
    /// Check the manifests of this file (- for standard input) as creations by an ordinary user, and answer in
    /// words; may be given several times. Without it, an AdmissionReview is read from standard input.
    #[arg(short, long = "filename", value_name = "FILE")]
    filenames: Vec<PathBuf>,
    /// The KubeVirt object whose configuration applies; the defaults without it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Other objects of the cluster that rules read; may be given several times.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// The namespace of objects that name none.
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Only fill in defaults.
    #[arg(long, conflicts_with = "validate_only")]
    mutate_only: bool,
    /// Only give the verdict, on the object as it is.
    #[arg(long)]
    validate_only: bool,
}

/// Answers a review, or checks manifests; the exit code is 1 if a manifest is refused.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let cluster = Cluster::read(arguments)?;
    if arguments.filenames.is_empty() { answer_review(arguments, &cluster) } else { lint(arguments, cluster) }
}

impl Arguments {
    fn steps(&self) -> Steps {
        match (self.mutate_only, self.validate_only) {
            (true, _) => Steps::Mutate,
            (_, true) => Steps::Validate,
            _ => Steps::Both,
        }
    }
}

/// What is known of the cluster.
struct Cluster {
    config: ClusterConfig,
    objects: KnownObjects,
    own_accounts: OwnAccounts,
}

impl Cluster {
    fn read(arguments: &Arguments) -> Result<Self> {
        let mut objects = KnownObjects::default();
        for file in &arguments.with {
            for document in documents::read(file, &arguments.namespace)? {
                objects.add(document.object).with_context(|| file.display().to_string())?;
            }
        }
        let installation = match &arguments.config {
            Some(file) => documents::installation(file, &arguments.namespace)?,
            None => KubeVirt::default(),
        };
        let namespace = installation.metadata.namespace.as_deref().filter(|_| arguments.config.is_some());
        let own_accounts = OwnAccounts::of_installation(namespace.unwrap_or("kubevirt"));
        Ok(Self { config: ClusterConfig::of(&installation), objects, own_accounts })
    }

    fn answer(&self, incoming: &Incoming, steps: Steps) -> Answer {
        let surroundings = Surroundings {
            config: &self.config,
            objects: &self.objects,
            own_accounts: &self.own_accounts,
            now: Time(jiff::Timestamp::now()),
            fresh_uuid: &uuid::Uuid::new_v4,
        };
        answer(incoming, &surroundings, steps)
    }
}

fn answer_review(arguments: &Arguments, cluster: &Cluster) -> Result<ExitCode> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
    let (review, code) = match Incoming::parse(&bytes) {
        Ok(incoming) => (cluster.answer(&incoming, arguments.steps()).to_review(), ExitCode::SUCCESS),
        Err(error) => {
            eprintln!("error: not an AdmissionReview of admission.k8s.io/v1: {error}");
            (error.to_review(), ExitCode::from(2))
        }
    };
    print(&review)?;
    Ok(code)
}

fn print(review: &Value) -> Result<()> {
    let mut text = serde_json::to_string_pretty(review)?;
    text.push('\n');
    std::io::stdout().write_all(text.as_bytes()).context("cannot write the answer")
}

fn lint(arguments: &Arguments, mut cluster: Cluster) -> Result<ExitCode> {
    let mut documents = Vec::new();
    for file in &arguments.filenames {
        documents.extend(documents::read(file, &arguments.namespace)?);
    }
    // The manifests of one application refer to each other: what is checked is also what rules may read.
    for document in documents.iter().filter(|document| document.is_reference()) {
        // What cannot be read is found wanting below, or is none of ours.
        let _ = cluster.objects.add(document.object.clone());
    }
    let mut report = words::Report::default();
    for document in documents {
        let Document { source, object } = document;
        if kubevirt_api::crd::KINDS.iter().any(|kind| object["kind"] == kind.name) {
            let incoming = Incoming::creation(object);
            report.verdict(&source, &incoming, &cluster.answer(&incoming, arguments.steps()));
        } else {
            report.skipped(&source, &object);
        }
    }
    report.print()
}
