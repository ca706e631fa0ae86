//! Networks and the interfaces that join them.

mod binding;
mod claims;
mod dhcp;
mod interface;
mod names;
mod ports;
mod source;
mod state;
#[cfg(test)]
mod testing;

use std::collections::HashMap;

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::network::{Interface, Network};

use crate::{Context, Path, Problems};

/// Where interfaces stand below the specification of an instance.
const INTERFACES: &str = "domain.devices.interfaces";

/// Everything that is wrong with the networks and interfaces of the specification that stands at `path`.
pub fn check(cx: &Context<'_>, path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let networks = spec.networks.as_deref().unwrap_or_default();
    let interfaces = spec.domain.devices.interfaces.as_deref().unwrap_or_default();
    source::check(path, networks, problems);
    names::check(path, networks, interfaces, problems);
    claims::check(cx, path, spec, problems);

    let by_name: HashMap<&str, &Network> =
        networks.iter().map(|network| (network.name.as_str(), network)).collect();
    let default_network = networks.iter().find(|network| source::is_default(network));
    let list = path.at(INTERFACES);
    for (index, interface) in interfaces.iter().enumerate() {
        let network = by_name.get(interface.name.as_str()).copied();
        let nic = Nic { spec: path, path: list.index(index), interface, network };
        interface::check(&nic, problems);
        state::check(&nic, default_network, problems);
        binding::check(cx, &nic, problems);
        ports::check(cx, &nic, problems);
        dhcp::check(&nic, problems);
    }
}

/// What is wrong only with new instances and machines: stored ones may still hold bindings that are gone.
pub fn check_creation(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let interfaces = spec.domain.devices.interfaces.as_deref().unwrap_or_default();
    let list = path.at(INTERFACES);
    for (index, interface) in interfaces.iter().enumerate() {
        binding::check_discontinued(&list.index(index), interface, problems);
    }
}

/// An interface with its place and the network that it names.
struct Nic<'a> {
    /// Where the specification stands.
    spec: &'a Path<'a>,
    /// Where the interface stands.
    path: Path<'a>,
    interface: &'a Interface,
    /// None if there is no network of that name.
    network: Option<&'a Network>,
}

impl Nic<'_> {
    /// Whether the interface joins the pod network.
    fn on_pod_network(&self) -> bool {
        self.network.is_some_and(|network| network.pod.is_some())
    }
}
