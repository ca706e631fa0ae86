//! `cargo xtask up`: from nothing to the login prompt of a machine, on this machine.

mod machine;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::Args;

use crate::cluster::{Cluster, Options};
use crate::images::{self, Profile};
use crate::install;

/// The arguments of `cargo xtask up`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Which cluster; those of different names exist side by side.
    #[arg(long, default_value = "default")]
    name: String,
    /// How many nodes it has.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=9))]
    nodes: u8,
    /// How the programs are built.
    #[arg(long, value_enum, default_value = "dev")]
    profile: Profile,
    /// The manifest of the machine.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/vm.yaml"))]
    vm: PathBuf,
    /// Install only, without a machine.
    #[arg(long)]
    no_vm: bool,
}

/// The arguments of `cargo xtask down`.
#[derive(Args, Debug)]
pub struct Down {
    /// Which cluster.
    #[arg(long, default_value = "default")]
    name: String,
}

/// Starts everything, and says how long each step took.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut steps = Steps::new();
    let Arguments { name, nodes, .. } = arguments;
    let cluster = Cluster::up(&Options::with_nodes(name, *nodes))?;
    steps.done(&format!("a Kubernetes of {}", counted(*nodes, "node")));
    let images = images::build(arguments.profile, None, None, images::REGISTRY)?;
    steps.done("the images are built");
    install::load(&cluster, &images)?;
    steps.done("the nodes have the images");
    // One of each will do on one machine.
    install::install(&cluster, &images, 1)?;
    steps.done("virt-api, virt-controller and virt-handler are ready");
    let machine = match arguments.no_vm {
        true => None,
        false => Some(machine::start(&cluster, &arguments.vm, &mut steps)?),
    };
    print!("{}", usage(&cluster.kubeconfig(), &images.program, name, machine.as_deref()));
    Ok(())
}

/// Ends everything.
pub fn down(arguments: &Down) -> Result<()> {
    let existed = Cluster::named(&arguments.name)?.down()?;
    println!("{}", if existed { "everything is gone" } else { "there was nothing" });
    Ok(())
}

/// Tells what is done, and how long it took.
struct Steps {
    begin: Instant,
    last: Instant,
}

impl Steps {
    fn new() -> Self {
        let now = Instant::now();
        Self { begin: now, last: now }
    }

    fn done(&mut self, what: &str) {
        let now = Instant::now();
        let (step, all) = (now - self.last, now - self.begin);
        println!("{:>7.1} s  {what} (+{:.1} s)", all.as_secs_f32(), step.as_secs_f32());
        self.last = now;
    }
}

fn counted(count: u8, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// How to go on.
fn usage(kubeconfig: &Path, program: &Path, cluster: &str, machine: Option<&str>) -> String {
    let kubectl = format!("cargo xtask cluster --name {cluster} kubectl");
    let mut lines = vec![
        (format!("export KUBECONFIG={}", kubeconfig.display()), "for virtctl, and a kubectl of your own"),
        (format!("{kubectl} get vms,vmis,pods"), "what there is"),
    ];
    if let Some(machine) = machine {
        let virtctl = format!("{} virtctl", program.display());
        lines.push((
            format!("{virtctl} console {machine}"),
            "log in as root, password root; leave with ctrl+]",
        ));
        let logs =
            format!("{kubectl} logs --follow --selector=vm.kubevirt.io/name={machine} --container=compute");
        lines.push((logs, "what the machine has printed"));
        lines.push((format!("{kubectl} delete vm {machine}"), "the end of the machine"));
    }
    let down = if cluster == "default" {
        "make down".to_owned()
    } else {
        format!("cargo xtask down --name {cluster}")
    };
    lines.push((down, "the end of everything"));
    let lines: String = lines.iter().map(|(command, what)| format!("  # {what}\n  {command}\n")).collect();
    format!("\nGo on with:\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_how_to_go_on() {
        let program = Path::new("/t/kubevirt");
        let text = usage(Path::new("/c/kubeconfig"), program, "default", Some("hello"));
        assert!(text.contains("/t/kubevirt virtctl console hello\n"), "{text}");
        assert!(text.contains("--selector=vm.kubevirt.io/name=hello"), "{text}");
        assert!(text.contains("make down") && text.contains("export KUBECONFIG=/c/kubeconfig"), "{text}");
        assert!(usage(Path::new("/c"), program, "other", None).contains("cargo xtask down --name other"));
    }
}
