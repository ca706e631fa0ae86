//! `kubevirt render`: what machines would become, without a cluster.

mod facts;
mod line;
mod machines;
mod surroundings;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::{Domain, Layout, QemuFacts, convert};
use kubevirt_virt_controller::vmi::pod;
use serde::Serialize;

use machines::Cluster;

/// What `kubevirt render` takes.
#[derive(Args)]
pub struct Arguments {
    /// Show the machines of this file (- for standard input); may be given several times. Claims, instance types,
    /// preferences and more may be in the same files.
    #[arg(short, long = "filename", value_name = "FILE", required = true)]
    filenames: Vec<PathBuf>,
    /// What to show.
    #[arg(short, long, value_enum, default_value_t = Output::Pod)]
    output: Output,
    /// The KubeVirt object whose configuration applies; the defaults without it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Other objects of the cluster; may be given several times.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// The namespace of objects that name none.
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Image of the launcher.
    #[arg(long, value_name = "IMAGE", default_value = "virt-launcher")]
    launcher_image: String,
    /// The cluster mounts images as volumes, so container disks need no containers of their own.
    #[arg(long)]
    image_volumes: bool,
}

/// What to show of a machine.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// The launcher pod, as YAML.
    Pod,
    /// The description of the machine, as YAML.
    Domain,
    /// The command line of QEMU.
    Qemu,
}

/// Shows what the machines become; the exit code is 1 if one cannot become anything.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (cluster, documents) = Cluster::read(arguments)?;
    let mut shown = Vec::new();
    let mut refused = 0;
    for document in &documents {
        let made = match cluster.instance(document)? {
            Ok(vmi) => arguments.show(&vmi, &cluster)?,
            Err(problems) => Err(problems),
        };
        match made {
            Ok(text) => shown.push(text),
            Err(problems) => {
                refused += 1;
                problems.iter().for_each(|problem| eprintln!("{}: {problem}", document.source));
            }
        }
    }
    if shown.is_empty() && refused == 0 {
        bail!("there is no VirtualMachine and no VirtualMachineInstance in the files");
    }
    let separator = if arguments.output == Output::Qemu { "\n" } else { "---\n" };
    let text = shown.join(separator);
    std::io::stdout().write_all(text.as_bytes()).context("cannot write")?;
    Ok(if refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A machine in words, or what stands in its way.
type Made = std::result::Result<String, Vec<String>>;

impl Arguments {
    fn show(&self, vmi: &VirtualMachineInstance, cluster: &Cluster) -> Result<Made> {
        if self.output == Output::Pod {
            let around = surroundings::of(vmi, cluster, self);
            return match pod::launcher(vmi, &around) {
                Ok(pod) => Ok(Ok(yaml(&pod)?)),
                Err(pod::NoPod::Unsupported(problems)) => Ok(Err(words(&problems))),
                Err(other) => Ok(Err(vec![other.to_string()])),
            };
        }
        let domain = match domain(vmi, cluster) {
            Ok(domain) => domain,
            Err(problems) => return Ok(Err(problems)),
        };
        Ok(Ok(if self.output == Output::Domain { yaml(&domain)? } else { line::of(&domain) }))
    }
}

fn domain(vmi: &VirtualMachineInstance, cluster: &Cluster) -> std::result::Result<Domain, Vec<String>> {
    let facts = facts::of(vmi, cluster);
    convert(vmi, &facts, &QemuFacts { version: facts::QEMU, ..QemuFacts::default() }, &Layout::default())
        .map_err(|error| words(&error.problems))
}

fn words(problems: &[kubevirt_domain::Unsupported]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

fn yaml(object: &impl Serialize) -> Result<String> {
    let mut text = serde_saphyr::to_string(object).context("cannot be written as YAML")?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}
