//! A real Kubernetes on one machine, for tests: `cargo xtask cluster` and, for tests themselves, [`Cluster`].
//!
//! Without nodes it is etcd and an API server on loopback, up within seconds and without root: enough for
//! CRDs, admission and aggregated APIs. A webhook of the test is registered by URL (`https://127.0.0.1:…`);
//! an aggregated API by a Service of type `ExternalName` that names `localhost`.

pub mod binaries;
pub mod certs;
pub mod cli;
pub mod control_plane;
pub mod down;
pub mod kubectl;
pub mod layout;
pub mod lock;
pub mod processes;
pub mod state;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use binaries::{Binaries, recipes};
use control_plane::Place;
use kubectl::Kubectl;
use layout::Layout;
use state::{Ports, State};

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The cluster's name; clusters of different names exist side by side.
    pub name: String,
    /// How many nodes; with none, just etcd and the API server run.
    pub nodes: u8,
}

impl Options {
    /// etcd and the API server only.
    pub fn control_plane_only(name: &str) -> Self {
        Self { name: name.to_owned(), nodes: 0 }
    }

    /// A whole cluster.
    pub fn with_nodes(name: &str, nodes: u8) -> Self {
        Self { name: name.to_owned(), nodes }
    }
}

/// A cluster. It goes on running when this is dropped; [`Cluster::down`] ends it.
#[derive(Clone, Debug)]
pub struct Cluster {
    layout: Layout,
    binaries: Binaries,
}

impl Cluster {
    /// Starts the cluster, or finds it running already. The programs are built first where need be.
    pub fn up(options: &Options) -> Result<Self> {
        let cluster = Self::named(&options.name)?;
        ensure!(options.nodes <= layout::MAX_NODES, "at most {} nodes", layout::MAX_NODES);
        cluster.binaries.ensure(match options.nodes {
            0 => recipes::FOR_CONTROL_PLANE,
            _ => recipes::FOR_NODES,
        })?;

        let layout = &cluster.layout;
        let name = layout.name();
        let _lock = lock::folder(layout.root(), || {
            eprintln!("another command works on cluster {name}, waiting for it");
        })?;
        if let Some(state) = State::read(layout) {
            match cluster.missing(&state)?.as_slice() {
                [] if state.complete => {
                    ensure!(
                        state.nodes == options.nodes,
                        "cluster {name} is up with {} nodes, not {}: take it down first",
                        state.nodes,
                        options.nodes
                    );
                    eprintln!("cluster {name} is already up");
                    return Ok(cluster);
                }
                [] => eprintln!("cluster {name} did not come up to the end, starting it anew"),
                missing => {
                    eprintln!("cluster {name} lost {}, starting it anew", missing.join(", "));
                }
            }
        }
        down::clear(layout)?;

        let begin = Instant::now();
        match cluster.start(options) {
            Ok(()) => {
                eprintln!("cluster {name} is up after {:.1} s", begin.elapsed().as_secs_f32());
                Ok(cluster)
            }
            Err(error) => {
                down::clear(layout)
                    .and_then(|()| down::remove(layout))
                    .context(format!("clean up after: {error:#}"))?;
                Err(error.context(format!("cluster {name} did not start")))
            }
        }
    }

    /// The cluster of this name, whether it runs or not.
    pub fn named(name: &str) -> Result<Self> {
        let cache = layout::cache()?;
        Ok(Self { layout: Layout::new(&cache, name)?, binaries: Binaries::new(&cache) })
    }

    /// Where the cluster's files are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The administrator's kubeconfig, for clients on this machine.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig()
    }

    /// Runs kubectl as the administrator and returns what it prints.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.client().run(arguments)
    }

    /// Ends the cluster and removes all of it but the cached programs. Says whether there was anything.
    pub fn down(self) -> Result<bool> {
        down::down(&self.layout)
    }

    fn client(&self) -> Kubectl {
        Kubectl {
            program: self.binaries.program(&recipes::KUBECTL),
            kubeconfig: self.layout.kubeconfig(),
            cache: self.layout.kubectl_cache(),
        }
    }

    fn start(&self, options: &Options) -> Result<()> {
        let layout = &self.layout;
        let ports = layout::free_ports(layout.name(), 3)?;
        let ports = Ports { api: ports[0], etcd: ports[1], etcd_peers: ports[2] };
        let mut state = State { nodes: options.nodes, ports, complete: false };
        state.write(layout)?;
        certs::write(layout, &certs::control_plane())?;
        let place = Place::Loopback(ports);
        certs::write_kubeconfig(layout, "admin", &place.server())?;
        control_plane::start_smallest(layout, &self.binaries, place, &self.client())?;
        state.complete = true;
        state.write(layout)
    }

    /// The components that a cluster of this state should have and that do not run.
    fn missing(&self, _state: &State) -> Result<Vec<String>> {
        let running = processes::running(self.layout.root())?;
        let expected = control_plane::SMALLEST.iter().map(|&component| component.to_owned());
        Ok(expected.filter(|component| !running.iter().any(|process| process.is(component))).collect())
    }
}
