//! The commands of `cargo xtask cluster`.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use super::state::State;
use super::{Cluster, Options, processes};

/// The arguments of `cargo xtask cluster`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Which cluster; those of different names exist side by side.
    #[arg(long, global = true, default_value = "default")]
    name: String,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Build the programs that are not in the cache yet, so that nothing later has to; says how far it is.
    Build,
    /// Start the cluster; does nothing when it is up.
    Up {
        /// Start just etcd and the API server, which takes a few seconds.
        #[arg(long)]
        control_plane_only: bool,
        /// How many nodes it has.
        #[arg(long, default_value_t = 1, conflicts_with = "control_plane_only", value_parser = clap::value_parser!(u8).range(1..=9))]
        nodes: u8,
    },
    /// End the cluster and remove everything of it but the cached programs.
    Down {
        /// End all clusters whose names begin so instead, such as those of tests.
        #[arg(long, conflicts_with = "name")]
        prefix: Option<String>,
    },
    /// Show what runs.
    Status,
    /// Run kubectl as the cluster's administrator.
    Kubectl {
        /// The arguments of kubectl.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Load the images of an archive (OCI or Docker) on all nodes.
    LoadImage {
        /// The archive.
        archive: PathBuf,
    },
    /// Add nodes that only pretend to run pods; a pod must tolerate the taint kwok.x-k8s.io/node.
    SimulateNodes {
        /// How many there are in the end.
        count: u32,
    },
    /// Work on one component, such as kube-apiserver or node01/kubelet.
    Component {
        #[command(subcommand)]
        action: ComponentAction,
    },
    /// Work on one node.
    Node {
        #[command(subcommand)]
        action: NodeAction,
    },
}

#[derive(Subcommand, Debug)]
enum ComponentAction {
    /// End it at once.
    Kill {
        /// The component.
        component: String,
    },
    /// Start it after it was killed.
    Start {
        /// The component.
        component: String,
    },
    /// End it at once and start it again.
    Restart {
        /// The component.
        component: String,
    },
}

#[derive(Subcommand, Debug)]
enum NodeAction {
    /// End everything on the node at once, as a power cut would.
    Stop {
        /// The node, such as node01.
        node: String,
    },
    /// Start a stopped node.
    Start {
        /// The node, such as node01.
        node: String,
    },
    /// End everything on the node at once, as a power cut would, and start it again.
    Restart {
        /// The node, such as node01.
        node: String,
    },
    /// Run a command in the node's namespaces.
    Exec {
        /// The node, such as node01.
        node: String,
        /// The command.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
}

/// Does what the arguments say.
pub fn run(arguments: Arguments) -> Result<()> {
    let name = arguments.name;
    match arguments.action {
        Action::Build => Cluster::build(),
        Action::Up { control_plane_only, nodes } => {
            let nodes = if control_plane_only { 0 } else { nodes };
            let cluster = Cluster::up(&Options { name, nodes })?;
            println!("export KUBECONFIG={}", cluster.kubeconfig().display());
            eprint!("{}", usage(cluster.layout().name(), nodes));
            Ok(())
        }
        Action::Down { prefix: Some(prefix) } => {
            let names = Cluster::names()?;
            names.iter().filter(|name| name.starts_with(&prefix)).try_for_each(|name| down(name))
        }
        Action::Down { prefix: None } => down(&name),
        Action::Status => status(&Cluster::named(&name)?),
        Action::Kubectl { arguments } => {
            let cluster = Cluster::named(&name)?;
            let Some(_) = State::read(cluster.layout()) else { bail!("no cluster {name}") };
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            // Only comes back when kubectl could not be started.
            Err(cluster.client().command(&arguments).exec()).context("run kubectl")
        }
        Action::LoadImage { archive } => Cluster::named(&name)?.load_image(&archive),
        Action::SimulateNodes { count } => {
            let cluster = Cluster::named(&name)?;
            cluster.simulate_nodes(count)?;
            eprintln!("{count} simulated nodes are ready");
            Ok(())
        }
        Action::Component { action } => {
            let cluster = Cluster::named(&name)?;
            match action {
                ComponentAction::Kill { component } => cluster.kill_component(&component),
                ComponentAction::Start { component } => cluster.start_component(&component),
                ComponentAction::Restart { component } => cluster.restart_component(&component),
            }
        }
        Action::Node { action } => on_node(&Cluster::named(&name)?, action),
    }
}

fn down(name: &str) -> Result<()> {
    let existed = Cluster::named(name)?.down()?;
    eprintln!("{}", if existed { format!("cluster {name} is gone") } else { format!("no cluster {name}") });
    Ok(())
}

/// What one can do with the cluster; not on standard output, which a shell may evaluate.
fn usage(name: &str, nodes: u8) -> String {
    let command = format!("cargo xtask cluster --name {name}");
    let mut lines = vec![("kubectl get nodes", "any command of kubectl"), ("status", "what runs, and where")];
    if nodes > 0 {
        lines.push(("load-image ARCHIVE", "an image that cargo xtask image packed, on all nodes"));
        lines.push(("node restart node01", "as a power cut would; also stop, start and exec"));
    }
    lines.push(("simulate-nodes 10", "nodes that pretend to run pods"));
    lines.push(("component restart kube-apiserver", "also kill and start"));
    lines.push(("down", "the end of it"));
    lines.iter().map(|(rest, what)| format!("  {command} {rest:<34}# {what}\n")).collect()
}

fn on_node(cluster: &Cluster, action: NodeAction) -> Result<()> {
    match action {
        NodeAction::Stop { node } => cluster.stop_node(&node),
        NodeAction::Start { node } => cluster.start_node(&node),
        NodeAction::Restart { node } => {
            cluster.restart_node(&node)?;
            eprintln!("{node} is ready again");
            Ok(())
        }
        NodeAction::Exec { node, command } => {
            let enter = cluster.enter_node(&node)?;
            Err(Command::new(&enter[0]).args(&enter[1..]).args(command).exec()).context("run nsenter")
        }
    }
}

fn status(cluster: &Cluster) -> Result<()> {
    let layout = cluster.layout();
    let Some(state) = State::read(layout) else { bail!("no cluster {}", layout.name()) };
    let missing = cluster.missing(&state)?;
    println!("cluster    {}", layout.name());
    println!("nodes      {}", state.nodes);
    println!("server     https://127.0.0.1:{}", state.ports.api);
    println!("kubeconfig {}", cluster.kubeconfig().display());
    println!("kubectl    {}", cluster.client().program.display());
    let running = processes::running(layout.root())?;
    for component in &cluster.components(&state) {
        match running.iter().find(|process| process.is(component)) {
            Some(process) => println!("{component:<28} runs, process {}", process.id),
            None => println!("{component:<28} is gone, log {}", layout.log(component).display()),
        }
    }
    match (state.complete, missing.is_empty()) {
        (true, true) => Ok(()),
        (false, _) => bail!("cluster {} did not come up to the end", layout.name()),
        (true, false) => bail!("cluster {} is not whole", layout.name()),
    }
}
