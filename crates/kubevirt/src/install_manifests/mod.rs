//! `kubevirt install-manifests`: everything that a cluster needs to run machines, as YAML.

mod certificates;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use kubevirt_api::kubevirt::KubeVirt;
use kubevirt_virt_operator::{Certificates, Images, InstallConfig, Lifetimes, objects};
use serde_json::Value;

/// What `kubevirt install-manifests` takes.
#[derive(Args)]
pub struct Arguments {
    /// The namespace of the components.
    #[arg(short, long, default_value = "kubevirt")]
    namespace: String,
    /// The image of virt-api, virt-controller and virt-handler.
    #[arg(long, default_value = concat!("localhost/kubevirt-rs/kubevirt:", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// The image of the pods that run machines.
    #[arg(long, default_value = concat!("localhost/kubevirt-rs/virt-launcher:", env!("CARGO_PKG_VERSION")))]
    launcher_image: String,
    /// When nodes pull the images.
    #[arg(long, default_value = "IfNotPresent", value_parser = ["Always", "IfNotPresent", "Never"])]
    pull_policy: String,
    /// A secret with a password of the registry; may be given several times.
    #[arg(long = "pull-secret", value_name = "NAME")]
    pull_secrets: Vec<String>,
    /// How many of virt-api and virt-controller there are; 2 if neither this nor --config says.
    #[arg(long)]
    replicas: Option<u8>,
    /// How much the components log.
    #[arg(short, long, default_value_t = 2)]
    verbosity: u8,
    /// A KubeVirt object: its configuration, placement and replicas apply.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Run machines in software where a node has no KVM: slow, for trying things out.
    #[arg(long)]
    use_emulation: bool,
    /// A feature gate to open; may be given several times.
    #[arg(long = "feature-gate", value_name = "NAME")]
    feature_gates: Vec<String>,
    /// A folder that keeps the certificates: what is in it and still good is used again, the rest is put there.
    #[arg(long, value_name = "FOLDER")]
    certificates: Option<PathBuf>,
    /// For how many days new certificates are good; their authority is for ten times as long.
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u16).range(1..))]
    certificate_days: u16,
    /// Do not tell the cluster's API server of the subresources that virt-api serves: no `virtctl start` and the like.
    #[arg(long)]
    no_api_services: bool,
    /// Print the definitions of the kinds, and nothing else.
    #[arg(long, conflicts_with = "no_definitions")]
    definitions: bool,
    /// Leave out the definitions of the kinds.
    #[arg(long)]
    no_definitions: bool,
}

/// Prints the objects.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut printed = Vec::new();
    if !arguments.no_definitions {
        printed.extend(objects::definitions());
    }
    if !arguments.definitions {
        printed.extend(objects::all(&configuration(arguments, Timestamp::now())?));
    }
    let text = documents(&printed)?;
    std::io::stdout().write_all(text.as_bytes()).context("write manifests")?;
    Ok(ExitCode::SUCCESS)
}

fn documents(objects: &[Value]) -> Result<String> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(object).context("write manifest")?);
    }
    Ok(text)
}

fn configuration(arguments: &Arguments, now: Timestamp) -> Result<InstallConfig> {
    let images = Images {
        components: arguments.image.clone(),
        launcher: arguments.launcher_image.clone(),
        pull_policy: arguments.pull_policy.clone(),
        pull_secrets: arguments.pull_secrets.clone(),
    };
    let mut config = InstallConfig::new(&arguments.namespace, images, issued(arguments, now)?);
    if let Some(file) = &arguments.config {
        configure(&mut config, file)?;
    }
    if let Some(replicas) = arguments.replicas {
        config.replicas = replicas;
    }
    config.verbosity = arguments.verbosity;
    config.api_services = !arguments.no_api_services;
    if arguments.use_emulation || !arguments.feature_gates.is_empty() {
        let developer = config.configuration.developer_configuration.get_or_insert_default();
        if arguments.use_emulation {
            developer.use_emulation = Some(true);
        }
        let gates = developer.feature_gates.get_or_insert_default();
        gates.extend(
            arguments.feature_gates.iter().filter(|gate| !gates.contains(gate)).cloned().collect::<Vec<_>>(),
        );
        if gates.is_empty() {
            developer.feature_gates = None;
        }
    }
    Ok(config)
}

/// Takes from a `KubeVirt` object what it says of the installation.
fn configure(config: &mut InstallConfig, file: &Path) -> Result<()> {
    let what = || format!("read {}", file.display());
    let text = std::fs::read_to_string(file).with_context(what)?;
    let installation: KubeVirt = serde_saphyr::from_str(&text).with_context(what)?;
    let spec = installation.spec;
    config.configuration = spec.configuration.unwrap_or_default();
    let infra = spec.infra.unwrap_or_default();
    config.infra = infra.node_placement.unwrap_or_default();
    if let Some(replicas) = infra.replicas {
        config.replicas =
            u8::try_from(replicas).with_context(|| format!("spec.infra.replicas is {replicas}"))?;
    }
    config.workloads = spec.workloads.and_then(|workloads| workloads.node_placement).unwrap_or_default();
    Ok(())
}

fn issued(arguments: &Arguments, now: Timestamp) -> Result<Certificates> {
    let day = SignedDuration::from_hours(24);
    let issued = day * i32::from(arguments.certificate_days);
    let lifetimes = Lifetimes { issued, authority: issued * 10 };
    let namespace = &arguments.namespace;
    match &arguments.certificates {
        None => Ok(Certificates::issue(namespace, lifetimes, now)?),
        Some(folder) => {
            let kept = certificates::read(folder)?;
            let renewed = Certificates::renew(namespace, kept, lifetimes, now)?;
            certificates::write(folder, &renewed)?;
            Ok(renewed)
        }
    }
}
