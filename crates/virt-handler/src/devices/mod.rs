//! What this node lends to pods through the kubelet: KVM, taps, vhost-net and permitted host devices.
//!
//! [`wanted`] says which resources there are, [`resource`] what the kubelet is told of one and what a container gets;
//! both are pure. [`plugin`] keeps one resource registered, [`run`] looks at the host again whenever the configuration
//! or a device changes.

mod changes;
pub mod kubelet;
pub mod mediated;
pub mod pci;
pub mod plugin;
pub mod resource;
pub mod slices;
mod sysfs;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod usb;
pub mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1;
use kube::{Api, Client};
use kubevirt_admission::ClusterConfig;
use kubevirt_component::Configuration;
use kubevirt_host::kvm::{self, Kvm};
use kubevirt_network::LAUNCHER_USER;
use rustix::fs::{AtFlags, CWD, Gid, Uid};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::changes::Changes;
use self::plugin::{Offer, Place, Plugin};
use self::resource::{Condition, Resource};
use self::slices::Wish;
use self::wanted::Found;

/// How often the labels of this node are looked at, where they make a difference.
const LABELS: Duration = Duration::from_secs(60);
/// The device that is not just there or not: it must run a guest.
const KVM_PATH: &str = "/dev/kvm";

/// Where to look for devices and for the kubelet.
#[derive(Clone)]
pub struct Options {
    /// The root of the node's files, as the first process of the node sees them.
    pub root: PathBuf,
    /// The kernel's tree of devices.
    pub sysfs: PathBuf,
    /// The kubelet's folder for device plugins.
    pub plugins: PathBuf,
    /// How many machines may use a device that all share.
    pub max_devices: usize,
    /// Who knows the labels of this node, and its name; without them it has none.
    pub node: Option<(Client, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            root: "/proc/1/root".into(),
            sysfs: "/sys".into(),
            plugins: "/var/lib/kubelet/device-plugins".into(),
            max_devices: 1000,
            node: None,
        }
    }
}

/// Offers the devices of this node until it is told to stop. `ready` is true while the kubelet knows of all of them.
pub async fn run(
    mut configuration: Configuration,
    options: Options,
    ready: watch::Sender<bool>,
    stop: CancellationToken,
) {
    let (tick, ticks) = watch::channel(0_u64);
    let (registered, mut told) = mpsc::unbounded_channel();
    let place =
        Place { folder: options.plugins.clone(), root: options.root.clone(), changes: ticks, registered };
    let mut changes = Changes::new();
    let mut node = Node::new(options);
    loop {
        let config = configuration.now();
        node.look(&config, &mut changes, &place).await;
        ready.send_replace(node.is_ready());
        let labels = Wish::needs_labels(&config);
        loop {
            tokio::select! {
                () = stop.cancelled() => {
                    ready.send_replace(false);
                    node.end().await;
                    return;
                }
                () = configuration.changed() => break,
                () = tokio::time::sleep(LABELS), if labels => break,
                changed = changes.next() => {
                    tick.send_modify(|count| *count += 1);
                    if changed.iter().any(|path| !path.starts_with(&node.options.plugins)) {
                        break;
                    }
                }
                Some((name, known)) = told.recv() => {
                    node.note(name, known);
                    ready.send_replace(node.is_ready());
                }
            }
        }
    }
}

/// The devices of this node as they are offered now.
struct Node {
    options: Options,
    /// What became of KVM, for the device node that was tried.
    kvm: Option<(Option<plugin::Identity>, Kvm)>,
    plugins: BTreeMap<String, Plugin>,
    registered: BTreeSet<String>,
    /// Whether slices of cards are, or were, the handler's affair.
    cuts_cards: bool,
}

impl Node {
    fn new(options: Options) -> Self {
        Self { options, kvm: None, plugins: BTreeMap::new(), registered: BTreeSet::new(), cuts_cards: false }
    }

    /// What is wanted of cards that can be cut. A configuration that is taken back wants no slices any more.
    async fn wish(&mut self, config: &ClusterConfig) -> Option<Wish> {
        let labels = match &self.options.node {
            Some((client, name)) if Wish::needs_labels(config) => {
                match Api::<v1::Node>::all(client.clone()).get(name).await {
                    Ok(node) => node.metadata.labels.unwrap_or_default(),
                    Err(error) => {
                        warn!(
                            "cards are left as they are, since the labels of this node are not known: {error}"
                        );
                        return None;
                    }
                }
            }
            _ => BTreeMap::new(),
        };
        let wish = Wish::of(config, &labels);
        let ended = self.cuts_cards && config.configuration().mediated_devices_configuration.is_none();
        self.cuts_cards = wish.is_some();
        wish.or_else(|| ended.then(Wish::default))
    }

    /// Looks at the host, starts and ends plugins, and tells those that run what has changed.
    async fn look(&mut self, config: &ClusterConfig, changes: &mut Changes, place: &Place) {
        let options = self.options.clone();
        let wish = self.wish(config).await;
        let look = move || {
            if let Some(wish) = wish {
                slices::arrange(&options.sysfs, &wish);
            }
            find(&options)
        };
        let found = tokio::task::spawn_blocking(look).await.unwrap_or_default();
        let resources = wanted::resources(config, &found, self.options.max_devices);
        // Watched before looked at, so that nothing happens unseen in between.
        for folder in self.folders(&resources) {
            changes.watch(&folder);
        }
        self.prove_kvm().await;
        let names: BTreeSet<&String> = resources.iter().map(|resource| &resource.name).collect();
        let left: Vec<String> = self.plugins.keys().filter(|name| !names.contains(name)).cloned().collect();
        for name in left {
            info!(resource = name, "is no longer offered");
            self.registered.remove(&name);
            if let Some(plugin) = self.plugins.remove(&name) {
                plugin.end().await;
            }
        }
        for resource in resources {
            let devices = resource.devices(|path| self.condition(path));
            let name = resource.name.clone();
            let offer = Offer { resource, devices };
            match self.plugins.get(&name) {
                Some(plugin) => plugin.update(offer),
                None => {
                    self.plugins.insert(name, Plugin::start(offer, place.clone()));
                }
            }
        }
    }

    /// The folders in which something can change for these resources, and those above them that may come to be.
    fn folders(&self, resources: &[Resource]) -> BTreeSet<PathBuf> {
        let mut folders = BTreeSet::from([self.options.plugins.clone()]);
        let fixed = ["/dev", "/dev/vfio", "/dev/bus/usb"].map(str::to_owned);
        let paths = resources.iter().flat_map(Resource::paths);
        let parents = paths.filter_map(|path| Some(Path::new(&path).parent()?.to_str()?.to_owned()));
        folders.extend(parents.chain(fixed).map(|folder| at(&self.options.root, &folder)));
        folders
    }

    /// Runs a tiny guest, if the device is not the one that ran it before.
    async fn prove_kvm(&mut self) {
        let path = at(&self.options.root, KVM_PATH);
        let identity = plugin::identity(&path);
        if self.kvm.as_ref().is_some_and(|(tried, _)| *tried == identity) {
            return;
        }
        let result = tokio::task::spawn_blocking(move || kvm::probe_device(&path)).await;
        let kvm = result.unwrap_or_else(|error| Kvm::Unusable { reason: error.to_string() });
        match &kvm {
            Kvm::Usable => info!("{kvm}"),
            _ => warn!("{kvm}, so no machine with KVM can come here"),
        }
        self.kvm = Some((identity, kvm));
    }

    fn condition(&self, path: &str) -> Condition {
        match &self.kvm {
            Some((_, Kvm::Unusable { .. })) if path == KVM_PATH => Condition::Useless,
            Some((_, Kvm::Missing)) if path == KVM_PATH => Condition::Gone,
            _ if at(&self.options.root, path).exists() => Condition::Well,
            _ => Condition::Gone,
        }
    }

    fn note(&mut self, name: String, known: bool) {
        if known && self.plugins.contains_key(&name) {
            self.registered.insert(name);
        } else {
            self.registered.remove(&name);
        }
    }

    fn is_ready(&self) -> bool {
        self.plugins.keys().all(|name| self.registered.contains(name))
    }

    async fn end(self) {
        let ends: Vec<_> = self.plugins.into_values().map(Plugin::end).collect();
        futures_util::future::join_all(ends).await;
    }
}

fn find(options: &Options) -> Found {
    // The first use of these makes the kernel load their drivers.
    for device in ["/dev/net/tun", "/dev/vhost-net", "/dev/vhost-vsock"] {
        let _ = std::fs::File::open(at(&options.root, device));
    }
    // A container sees only its own control group; the capacity is said in that of the node.
    let capacity = at(&options.root, "/sys/fs/cgroup/misc.capacity");
    Found {
        pci: pci::devices(&options.sysfs),
        mediated: mediated::devices(&options.sysfs),
        usb: usb::devices(&options.sysfs),
        trust_domains: trust_domains(&sysfs::text(&capacity).unwrap_or_default()),
    }
}

/// How many trust domains the kernel says can run.
fn trust_domains(capacity: &str) -> usize {
    let count = |line: &str| line.strip_prefix("tdx ")?.trim().parse().ok();
    capacity.lines().find_map(count).unwrap_or(0)
}

/// Makes launchers the owner of a file of the node, and of nothing that a link leads to.
pub(crate) fn hand_over(root: &Path, path: &str) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(LAUNCHER_USER), Gid::from_raw(LAUNCHER_USER));
    rustix::fs::chownat(CWD, at(root, path), Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

/// A path of the node. `/var/run` is a link to `/run`, and links would be followed from our own root.
fn at(root: &Path, path: &str) -> PathBuf {
    let path = path.strip_prefix("/var").filter(|rest| rest.starts_with("/run/")).unwrap_or(path);
    root.join(path.trim_start_matches('/'))
}
