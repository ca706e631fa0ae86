//! Which resources this node has: from the configuration and what was found, without looking at anything.

use kubevirt_admission::{ClusterConfig, Gate};
use kubevirt_api::names::resources::{
    IOMMUFD, KVM, MEDIATED_VARIABLE, PCI_VARIABLE, PR_HELPER, SEV, TDX, TUN, USB_VARIABLE, VHOST_NET,
    VHOST_VSOCK,
};

use super::mediated::{self, MediatedDevice};
use super::pci::{self, PciDevice};
use super::resource::{Resource, Supply, Thing, Unit};
use super::usb::{self, UsbDevice};

/// Where the helper for persistent reservations listens.
const PR_HELPER_FOLDER: &str = "/var/run/kubevirt/daemons/pr";

/// What this host has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// PCI devices for guests.
    pub pci: Vec<PciDevice>,
    /// Slices of cards.
    pub mediated: Vec<MediatedDevice>,
    /// Plugged USB devices.
    pub usb: Vec<UsbDevice>,
    /// How many trust domains can run.
    pub trust_domains: usize,
}

/// The resources to offer, in the order of their names and each once.
pub fn resources(config: &ClusterConfig, found: &Found, max_devices: usize) -> Vec<Resource> {
    let shared = |name: &str, path: &str| Resource {
        name: name.to_owned(),
        supply: Supply::Shared { thing: Thing::Node { path: path.to_owned() }, count: max_devices },
    };
    let mut all =
        vec![shared(KVM, "/dev/kvm"), shared(TUN, "/dev/net/tun"), shared(VHOST_NET, "/dev/vhost-net")];
    if config.enabled(Gate::WorkloadEncryptionSev) {
        all.push(shared(SEV, "/dev/sev"));
    }
    if config.enabled(Gate::Vsock) {
        all.push(shared(VHOST_VSOCK, "/dev/vhost-vsock"));
    }
    if config.enabled(Gate::Iommufd) {
        all.push(shared(IOMMUFD, "/dev/iommu"));
    }
    all.extend(trust_domains(config, found.trust_domains));
    if config.persistent_reservation() {
        let thing = Thing::Socket {
            folder: PR_HELPER_FOLDER.to_owned(),
            file: "pr-helper.sock".to_owned(),
            required: true,
            hand_over: true,
        };
        all.push(Resource {
            name: PR_HELPER.to_owned(),
            supply: Supply::Shared { thing, count: max_devices },
        });
    }
    all.extend(host_devices(config, found));
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all.dedup_by(|one, other| one.name == other.name);
    all
}

fn trust_domains(config: &ClusterConfig, count: usize) -> Option<Resource> {
    if count == 0 || !config.enabled(Gate::WorkloadEncryptionTdx) {
        return None;
    }
    let tdx = config.configuration().confidential_compute.as_ref().and_then(|own| own.tdx.as_ref());
    let attestation = tdx.and_then(|tdx| tdx.attestation.as_ref());
    let (folder, file) = config.quote_socket().rsplit_once('/')?;
    let thing = Thing::Socket {
        folder: folder.to_owned(),
        file: file.to_owned(),
        required: attestation.and_then(|attestation| attestation.enforced).unwrap_or(false),
        hand_over: false,
    };
    Some(Resource { name: TDX.to_owned(), supply: Supply::Shared { thing, count } })
}

fn host_devices(config: &ClusterConfig, found: &Found) -> Vec<Resource> {
    let Some(permitted) = config.permitted_host_devices() else { return Vec::new() };
    let of = |variable, hand_over| {
        move |(name, units): (String, Vec<Unit>)| Resource {
            name,
            supply: Supply::Own { variable, units, hand_over },
        }
    };
    let pci = pci::permitted(&found.pci, permitted.pci_host_devices.as_deref().unwrap_or_default());
    let slices =
        mediated::permitted(&found.mediated, permitted.mediated_devices.as_deref().unwrap_or_default());
    let usb = usb::permitted(&found.usb, permitted.usb.as_deref().unwrap_or_default());
    let mut all: Vec<Resource> = pci.into_iter().map(of(PCI_VARIABLE, false)).collect();
    all.extend(slices.into_iter().map(of(MEDIATED_VARIABLE, false)));
    all.extend(usb.into_iter().map(of(USB_VARIABLE, true)));
    all
}

#[cfg(test)]
mod tests {
    use kubevirt_api::kubevirt::KubeVirt;
    use serde_json::{Value, json};

    use super::*;

    fn config(configuration: Value) -> ClusterConfig {
        let object =
            json!({ "metadata": { "name": "kubevirt" }, "spec": { "configuration": configuration } });
        ClusterConfig::of(&serde_json::from_value::<KubeVirt>(object).unwrap())
    }

    fn names(configuration: Value, found: &Found) -> Vec<String> {
        resources(&config(configuration), found, 10).into_iter().map(|resource| resource.name).collect()
    }

    #[test]
    fn every_node_has_the_three_and_gates_add_more() {
        let basic =
            json!({ "developerConfiguration": { "disabledFeatureGates": ["WorkloadEncryptionSEV"] } });
        assert_eq!(names(basic, &Found::default()), [KVM, TUN, VHOST_NET]);
        let gates = json!({ "developerConfiguration": { "featureGates":
            ["WorkloadEncryptionSEV", "VSOCK", "IOMMUFD", "WorkloadEncryptionTDX", "PersistentReservation"] } });
        let found = Found { trust_domains: 15, ..Found::default() };
        let all = names(gates.clone(), &found);
        for name in [SEV, VHOST_VSOCK, TDX, PR_HELPER, IOMMUFD] {
            assert!(all.iter().any(|one| one == name), "{name} in {all:?}");
        }
        assert!(!names(gates, &Found::default()).iter().any(|name| name == TDX), "no capacity, no resource");
    }

    #[test]
    fn permitted_devices_become_resources() {
        let found = Found {
            pci: vec![PciDevice {
                address: "0000:65:00.0".into(),
                model: "10de:1eb8".into(),
                group: "45".into(),
                numa: None,
                nodes: vec![],
            }],
            usb: vec![UsbDevice { vendor: 1, product: 2, bus: 3, number: 4, node: "/dev/x".into() }],
            ..Found::default()
        };
        let permitted = json!({ "permittedHostDevices": {
            "pciHostDevices": [{ "pciVendorSelector": "10DE:1EB8", "resourceName": "nvidia.com/T4" }],
            "usb": [{ "resourceName": "example.com/usb", "selectors": [{ "vendor": "1", "product": "2" }] }],
            "mediatedDevices": [{ "mdevNameSelector": "x", "resourceName": "example.com/none" }],
        }});
        let all = resources(&config(permitted), &found, 10);
        let own: Vec<_> = all
            .iter()
            .filter_map(|resource| match &resource.supply {
                Supply::Own { variable, hand_over, .. } => {
                    Some((resource.name.as_str(), *variable, *hand_over))
                }
                Supply::Shared { .. } => None,
            })
            .collect();
        assert_eq!(
            own,
            [("example.com/usb", "USB_RESOURCE", true), ("nvidia.com/T4", "PCI_RESOURCE", false)]
        );
    }
}
