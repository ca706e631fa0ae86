//! The network interfaces of an instance, as its pod has them.

mod attached;
mod interfaces;
mod migration;
mod notes;

pub use attached::Attached;
pub use interfaces::update;
pub use migration::{RECHECK, update as update_migration_required};
pub use notes::{device_info, selection};

use kubevirt_api::vmi::network::Network;
use kubevirt_network::names;

/// The network that takes the place of the pod's own.
fn primary(networks: &[Network]) -> Option<&Network> {
    let is_default =
        |network: &Network| network.multus.as_ref().is_some_and(|multus| multus.default == Some(true));
    networks.iter().find(|network| network.pod.is_some() || is_default(network))
}

/// The further networks that Multus attaches, and what the pod calls their interfaces.
fn secondary<'a>(networks: &'a [Network], attached: &[Attached]) -> Vec<(&'a Network, String)> {
    let ordinal = attached.iter().any(|it| names::is_ordinal(&it.interface));
    let is_secondary =
        |network: &&Network| network.multus.as_ref().is_some_and(|multus| multus.default != Some(true));
    let secondary = networks.iter().filter(is_secondary).enumerate();
    secondary
        .map(|(place, network)| {
            let name = if ordinal { names::ordinal(place + 1) } else { names::hashed(&network.name) };
            (network, name)
        })
        .collect()
}
