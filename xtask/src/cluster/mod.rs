//! A real Kubernetes on one machine, for tests: `cargo xtask cluster` and, for tests themselves, [`Cluster`].
//!
//! Without nodes it is etcd and an API server on loopback, up within seconds and without root: enough for
//! CRDs, admission and aggregated APIs. A webhook of the test is registered by URL (`https://127.0.0.1:…`);
//! an aggregated API by a Service of type `ExternalName` that names `localhost`.
//!
//! With nodes it is a whole cluster in namespaces of its own, and needs root. The nodes share the machine's
//! disk: [`layout::SHARED_MOUNT`] is the same folder on all of them.

pub mod binaries;
pub mod certs;
pub mod cgroups;
pub mod cli;
pub mod control_plane;
pub mod devices;
pub mod down;
pub mod kubectl;
pub mod layout;
pub mod lock;
pub mod network;
pub mod node;
pub mod processes;
pub mod registry;
pub mod simulated;
pub mod state;

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use binaries::{Binaries, recipes};
use certs::Subject;
use control_plane::Place;
use kubectl::Kubectl;
use layout::{Layout, Node};
use registry::Registry;
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
        match options.nodes {
            0 => cluster.binaries.ensure(recipes::FOR_CONTROL_PLANE)?,
            _ => cluster.prepare_for_nodes()?,
        }

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

    /// Builds everything that any cluster needs, as far as it is not in the cache.
    pub fn build() -> Result<()> {
        let binaries = Binaries::new(&layout::cache()?);
        binaries::host::ensure(&binaries)?;
        binaries.ensure(recipes::FOR_NODES)?;
        binaries.ensure(&[recipes::SIMULATED_NODES, recipes::KUBEVIRT_CLIENT])?;
        binaries.ensure_pause_image()
    }

    /// The cluster of this name, whether it runs or not.
    pub fn named(name: &str) -> Result<Self> {
        let cache = layout::cache()?;
        Ok(Self { layout: Layout::new(&cache, name)?, binaries: Binaries::new(&cache) })
    }

    /// The names of all clusters of this user that are there, running or not.
    pub fn names() -> Result<Vec<String>> {
        let entries = match fs::read_dir(layout::cache()?.join("clusters")) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
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

    /// Runs kubectl as the administrator on what it reads from `input`.
    pub fn kubectl_with_input(&self, arguments: &[&str], input: &str) -> Result<String> {
        self.client().run_with_input(arguments, input)
    }

    /// A kubectl command as the administrator, to be run by the caller.
    pub fn kubectl_command(&self, arguments: &[&str]) -> Command {
        self.client().command(arguments)
    }

    /// KubeVirt's own virtctl, built if need be, to be run by the caller as the administrator.
    pub fn virtctl_command(&self) -> Result<Command> {
        self.binaries.ensure(&[recipes::KUBEVIRT_CLIENT])?;
        let mut command = Command::new(self.binaries.program(&recipes::KUBEVIRT_CLIENT));
        // In the environment, where the programs that it runs find it too.
        command.env("KUBECONFIG", self.layout.kubeconfig());
        Ok(command)
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

    /// The nodes of the running cluster.
    pub fn nodes(&self) -> Vec<Node> {
        let count = State::read(&self.layout).map_or(0, |state| state.nodes);
        (1..=count).map(|number| self.layout.node(number)).collect()
    }

    /// Loads the images of an archive (OCI or Docker) on all nodes.
    pub fn load_image(&self, archive: &Path) -> Result<()> {
        let nodes = self.nodes();
        ensure!(!nodes.is_empty(), "cluster {} has no nodes", self.layout.name());
        nodes.iter().try_for_each(|node| node::load_image(&self.layout, &self.binaries, node, archive))
    }

    /// Lets nodes pull images from archives, under these names, until it is dropped.
    pub fn serve_images(&self, images: &[(&str, &Path)]) -> Result<Registry> {
        Registry::serve(self.hub()?, images)
    }

    /// Ends everything on a node at once, as a power cut would, and starts the node again.
    pub fn restart_node(&self, name: &str) -> Result<()> {
        self.stop_node(name)?;
        self.start_node(name)
    }

    /// Ends everything on a node at once, as a power cut would.
    pub fn stop_node(&self, name: &str) -> Result<()> {
        let _lock = lock::folder(self.layout.root(), || {})?;
        let prefix = self.node(name)?.component("");
        processes::stop(self.layout.root(), |process| process.component.starts_with(&prefix))
    }

    /// Starts a stopped node and waits until it is ready.
    pub fn start_node(&self, name: &str) -> Result<()> {
        let _lock = lock::folder(self.layout.root(), || {})?;
        let node = self.node(name)?;
        let init = node.component(node::INIT);
        let running = processes::running(self.layout.root())?;
        ensure!(!running.iter().any(|process| process.is(&init)), "{name} runs already");
        let last_word = node::last_word(&self.client(), &node)?;
        let hub = self.hub()?;
        let mut started = node::boot(&self.layout, &self.binaries, hub, &node, &self.others(&node))?;
        started.extend(node::join(&self.layout, &self.binaries, &node)?);
        node::wait_until_ready(&mut started, &self.client(), &node, &last_word)
    }

    /// Ends one component at once, such as `kube-apiserver` or `node01/kubelet`; what it started lives on.
    pub fn kill_component(&self, component: &str) -> Result<()> {
        let _lock = lock::folder(self.layout.root(), || {})?;
        self.ensure_component(component)?;
        processes::stop(self.layout.root(), |process| process.is(component))
    }

    /// Starts a component that was killed; of the API server, waits until it is ready.
    pub fn start_component(&self, component: &str) -> Result<()> {
        let _lock = lock::folder(self.layout.root(), || {})?;
        self.ensure_component(component)?;
        let running = processes::running(self.layout.root())?;
        ensure!(!running.iter().any(|process| process.is(component)), "{component} runs already");
        if let Some((node, program)) = component.split_once('/') {
            return node::start(&self.layout, &self.binaries, &self.node(node)?, program).map(drop);
        }
        let started = control_plane::start(&self.layout, &self.binaries, self.place()?, component)?;
        match component {
            "kube-apiserver" => control_plane::wait_until_ready(&mut [started], &self.client()),
            _ => Ok(()),
        }
    }

    /// Kills a component and starts it again.
    pub fn restart_component(&self, component: &str) -> Result<()> {
        self.kill_component(component)?;
        self.start_component(component)
    }

    /// Whether everything runs that should.
    pub fn is_whole(&self) -> Result<bool> {
        let Some(state) = State::read(&self.layout) else { return Ok(false) };
        Ok(state.complete && self.missing(&state)?.is_empty())
    }

    fn ensure_component(&self, component: &str) -> Result<()> {
        let name = self.layout.name();
        let state = State::read(&self.layout).with_context(|| format!("no cluster {name}"))?;
        let known = self.components(&state);
        let list = known.join(", ");
        ensure!(
            known.iter().any(|one| one == component),
            "{component:?} is none of {list} in cluster {name}"
        );
        Ok(())
    }

    fn place(&self) -> Result<Place> {
        let state = State::read(&self.layout).context("the cluster is gone")?;
        Ok(if state.nodes == 0 { Place::Loopback(state.ports) } else { Place::Hub(self.hub()?) })
    }

    /// The beginning of a command that runs in the node `name`.
    pub fn enter_node(&self, name: &str) -> Result<Vec<OsString>> {
        node::enter(&self.layout, &self.node(name)?)
    }

    fn node(&self, name: &str) -> Result<Node> {
        let node = self.nodes().into_iter().find(|node| node.name == name);
        node.with_context(|| format!("cluster {} has no node {name}", self.layout.name()))
    }

    fn others(&self, node: &Node) -> Vec<Node> {
        self.nodes().into_iter().filter(|other| other != node).collect()
    }

    /// A process in the control plane's network.
    fn hub(&self) -> Result<u32> {
        let running = processes::running(self.layout.root())?;
        let holder = running.iter().find(|process| process.is(network::HOLDER));
        Ok(u32::try_from(holder.context("the cluster's network is gone")?.id)?)
    }

    fn prepare_for_nodes(&self) -> Result<()> {
        ensure!(rustix::process::geteuid().is_root(), "nodes need root; --control-plane-only does not");
        let folder = self.layout.root();
        ensure!(
            !node::init::hides(folder) && folder.as_os_str().len() < 90,
            "{} cannot be seen from nodes or is too long: set KUBEVIRT_RS_CACHE to another folder",
            folder.display()
        );
        binaries::host::ensure(&self.binaries)?;
        self.binaries.ensure(recipes::FOR_NODES)?;
        self.binaries.ensure_pause_image()
    }

    fn start(&self, options: &Options) -> Result<()> {
        let layout = &self.layout;
        let ports = layout::free_ports(layout.name(), 3)?;
        let ports = Ports { api: ports[0], etcd: ports[1], etcd_peers: ports[2] };
        let mut state = State { nodes: options.nodes, ports, complete: false };
        state.write(layout)?;
        match options.nodes {
            0 => self.start_control_plane(ports)?,
            _ => self.start_with_nodes(ports)?,
        }
        state.complete = true;
        state.write(layout)
    }

    fn start_control_plane(&self, ports: Ports) -> Result<()> {
        let place = Place::Loopback(ports);
        certs::write(&self.layout, &certs::control_plane())?;
        certs::write_kubeconfig(&self.layout, "admin", &place.server())?;
        let mut started = control_plane::start_smallest(&self.layout, &self.binaries, place)?;
        control_plane::wait_until_ready(&mut started, &self.client())
    }

    fn start_with_nodes(&self, ports: Ports) -> Result<()> {
        let (layout, binaries, kubectl, nodes) = (&self.layout, &self.binaries, self.client(), self.nodes());
        let hub = network::start_hub(layout)?;
        let place = Place::Hub(hub.id());
        let subjects: Vec<Subject> =
            certs::control_plane().into_iter().chain(nodes.iter().flat_map(certs::node)).collect();
        certs::write(layout, &subjects)?;
        for subject in &subjects {
            certs::write_kubeconfig(layout, &subject.file, &place.server())?;
        }
        certs::write_kubeconfig(layout, "admin", &Place::Loopback(ports).server())?;

        // The API server takes its time; nodes do without it until they join.
        let mut started = control_plane::start_smallest(layout, binaries, place)?;
        started.extend(network::start_forwarders(layout, hub.id(), ports.api)?);
        let id = hub.id();
        started.push(hub);
        for node in &nodes {
            started.extend(node::boot(layout, binaries, id, node, &self.others(node))?);
        }
        control_plane::wait_until_ready(&mut started, &kubectl)?;
        started.extend(control_plane::start_controllers(layout, binaries, place)?);
        for node in &nodes {
            started.extend(node::join(layout, binaries, node)?);
        }
        for node in &nodes {
            node::wait_until_ready(&mut started, &kubectl, node, "")?;
        }
        control_plane::wait_for_controllers(&mut started, &kubectl)
    }

    /// The components that a cluster of this state has.
    fn components(&self, state: &State) -> Vec<String> {
        let mut components: Vec<&str> = control_plane::SMALLEST.to_vec();
        if state.nodes > 0 {
            components.extend(control_plane::CONTROLLERS);
            components.extend([network::HOLDER, network::FORWARDER_OUTSIDE, network::FORWARDER_INSIDE]);
        }
        let of_node = |number| {
            let node = self.layout.node(number);
            node::COMPONENTS.iter().map(move |component| node.component(component))
        };
        components.into_iter().map(str::to_owned).chain((1..=state.nodes).flat_map(of_node)).collect()
    }

    /// The components that a cluster of this state should have and that do not run.
    fn missing(&self, state: &State) -> Result<Vec<String>> {
        let running = processes::running(self.layout.root())?;
        let gone = |component: &String| !running.iter().any(|process| process.is(component));
        Ok(self.components(state).into_iter().filter(gone).collect())
    }
}
