//! The clusters that tests share.

use std::fs::File;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow};
use futures_util::FutureExt;
use xtask::cluster::{Cluster, Options, layout};
use xtask::images::{self, Images, Profile};
use xtask::install;

use crate::report;
use crate::test::Test;

/// etcd and an API server, for tests that need no pods; up within seconds and without root.
pub static API_SERVER: Shared = Shared::new("test-api", 0);
/// A whole cluster with the nodes `node01` and `node02`; needs root.
pub static NODES: Shared = Shared::new("test", 2);
/// The same cluster with our system on it, built as tests are and told to do without KVM.
pub static KUBEVIRT: Shared = Shared::new("test", 2).installed();

/// The images of our system, built once in a run.
static IMAGES: OnceLock<Result<Images, String>> = OnceLock::new();

/// A cluster that tests share.
#[derive(Debug)]
pub struct Shared {
    name: &'static str,
    nodes: u8,
    /// Whether our system is on it.
    installed: bool,
    up: OnceLock<Result<Cluster, String>>,
}

impl Shared {
    /// A cluster of this name and with so many nodes.
    pub const fn new(name: &'static str, nodes: u8) -> Self {
        Self { name, nodes, installed: false, up: OnceLock::new() }
    }

    /// The same, with our system on it.
    const fn installed(mut self) -> Self {
        self.installed = true;
        self
    }

    /// Runs a test that leaves alone what others use, side by side with others. `name` becomes a part of
    /// the name of its namespace.
    pub async fn run(&self, name: &str, body: impl AsyncFnOnce(&Test) -> Result<()>) -> Result<()> {
        let _lock = self.lock(File::lock_shared)?;
        self.run_locked(name, body).await
    }

    /// Runs a test that stops what others use, such as a node, when no other test runs on the cluster. What
    /// it left stopped is started before the next test.
    pub async fn run_alone(&self, name: &str, body: impl AsyncFnOnce(&Test) -> Result<()>) -> Result<()> {
        let _lock = self.lock(File::lock)?;
        let result = AssertUnwindSafe(self.run_locked(name, body)).catch_unwind().await;
        if !Cluster::named(self.name)?.is_whole()? {
            Cluster::up(&self.options())?;
        }
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    async fn run_locked(&self, name: &str, body: impl AsyncFnOnce(&Test) -> Result<()>) -> Result<()> {
        let up = self.up.get_or_init(|| Cluster::up(&self.options()).map_err(|error| format!("{error:#}")));
        let cluster = up.as_ref().map_err(|error| anyhow!("{error}"))?;
        if self.installed {
            // Done once, unless the cluster was started anew since.
            install::install(cluster, system_images()?, 2).context("install the system")?;
        }
        let test = Test::start(cluster, name).await.with_context(|| format!("namespace for {name}"))?;
        let result = AssertUnwindSafe(body(&test)).catch_unwind().await;
        if !matches!(result, Ok(Ok(()))) {
            let report = report::of_namespace(test.client(), test.namespace()).await;
            eprintln!("{name} failed in namespace {}.\n{report}", test.namespace());
        }
        let ended = test.end().await;
        result.unwrap_or_else(|panic| resume_unwind(panic))?;
        ended
    }

    fn options(&self) -> Options {
        Options { name: self.name.to_owned(), nodes: self.nodes }
    }

    /// A lock among all tests on this machine, whichever process they are in; gone with its holder.
    fn lock(&self, how: fn(&File) -> std::io::Result<()>) -> Result<File> {
        let folder = layout::cache()?;
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.tests.lock", self.name));
        let file = File::create(&path).with_context(|| format!("open {}", path.display()))?;
        how(&file).with_context(|| format!("lock {}", path.display()))?;
        Ok(file)
    }
}

/// The images of our system, built as tests are; of [`KUBEVIRT`], all nodes have them. Among them is a disk with the
/// guest of the tests, for a containerDisk. `KUBEVIRT_RS_IMAGES` names a folder of images to test instead.
pub fn system_images() -> Result<&'static Images> {
    let built = IMAGES.get_or_init(|| {
        let images = match std::env::var_os("KUBEVIRT_RS_IMAGES") {
            Some(folder) => images::packed(folder.as_ref()),
            None => images::build(Profile::Dev, None, None, images::REGISTRY),
        };
        images.map_err(|error| format!("{error:#}"))
    });
    built.as_ref().map_err(|error| anyhow!("{error}"))
}
