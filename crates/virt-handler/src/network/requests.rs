//! What phase 1 is asked for, from the VMI and the cluster's settings.

use kubevirt_admission::ClusterConfig;
use kubevirt_api::kubevirt::network::DomainAttachmentType;
use kubevirt_api::names::external::istio;
use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::network::{Interface, Network};
use kubevirt_api::vmi::status::{InterfaceStatus, MigrationTransport};
use kubevirt_network::{Binding, InterfaceRequest, Masquerade, Ports, Protocol, names};

use crate::permissions;

/// Most queues of a tap device.
const MOST_QUEUES: u32 = 256;
/// Ports of a migration that does not go over Unix sockets.
const MIGRATION_PORTS: [u16; 2] = [49152, 49153];

/// What is asked for the interfaces that a test picks. An error names the field.
pub fn of(
    vmi: &VirtualMachineInstance,
    config: &ClusterConfig,
    picked: impl Fn(&Interface) -> bool,
) -> Result<Vec<InterfaceRequest>, String> {
    let mut requests = Vec::new();
    let interfaces = vmi.spec.domain.devices.interfaces.iter().flatten();
    for (index, interface) in interfaces.enumerate().filter(|(_, interface)| picked(interface)) {
        let field = format!("spec.domain.devices.interfaces[{index}]");
        let mut networks = vmi.spec.networks.iter().flatten();
        let Some(network) = networks.find(|network| network.name == interface.name) else {
            return Err(format!("{field}: there is no network {:?}", interface.name));
        };
        let Some(binding) = binding(vmi, config, interface, network, &field)? else { continue };
        let status = status(vmi, &interface.name);
        let own = interface.mac_address.as_ref().filter(|mac| !mac.is_empty());
        let mac = own.or_else(|| status?.mac.as_ref().filter(|mac| !mac.is_empty()));
        let mac = mac.map(|mac| mac.parse()).transpose();
        requests.push(InterfaceRequest {
            network: interface.name.clone(),
            pod_interfaces: pod_interfaces(vmi, network, status),
            primary: is_primary(network),
            place: u8::try_from(index).unwrap_or(u8::MAX),
            binding,
            mac: mac.map_err(|error| format!("{field}.macAddress: {error}"))?,
            queues: queues(vmi, interface),
            owner: permissions::user(vmi),
        });
    }
    Ok(requests)
}

fn status<'a>(vmi: &'a VirtualMachineInstance, name: &str) -> Option<&'a InterfaceStatus> {
    let statuses = vmi.status.as_ref()?.interfaces.as_ref()?;
    statuses.iter().find(|status| status.name.as_deref() == Some(name))
}

fn is_primary(network: &Network) -> bool {
    network.pod.is_some() || network.multus.as_ref().is_some_and(|multus| multus.default == Some(true))
}

fn pod_interfaces(
    vmi: &VirtualMachineInstance,
    network: &Network,
    status: Option<&InterfaceStatus>,
) -> Vec<String> {
    let told = status.and_then(|status| status.pod_interface_name.clone()).filter(|name| !name.is_empty());
    let usual = if is_primary(network) {
        vec![names::PRIMARY.to_owned()]
    } else {
        let mut others = vmi.spec.networks.iter().flatten().filter(|network| !is_primary(network));
        let place = others.position(|other| other.name == network.name).unwrap_or_default() + 1;
        names::candidates(&network.name, place)
    };
    told.into_iter().chain(usual).collect()
}

/// How an interface is connected; nothing if phase 1 has nothing to do with it.
fn binding(
    vmi: &VirtualMachineInstance,
    config: &ClusterConfig,
    interface: &Interface,
    network: &Network,
    field: &str,
) -> Result<Option<Binding>, String> {
    if interface.masquerade.is_some() {
        return masquerade(vmi, interface, network, field).map(|details| Some(Binding::Masquerade(details)));
    }
    if interface.bridge.is_some() {
        return Ok(Some(Binding::Bridge));
    }
    if interface.passt_binding.is_some() {
        return Ok(Some(Binding::Passt));
    }
    if interface.sriov.is_some() {
        return Ok(None);
    }
    if let Some(plugin) = &interface.binding {
        let known = config.network_bindings().and_then(|bindings| bindings.get(&plugin.name));
        let kind = known.and_then(|plugin| plugin.domain_attachment_type.as_ref());
        return Ok((kind == Some(&DomainAttachmentType::ManagedTap)).then_some(Binding::ManagedTap));
    }
    let old = [
        ("slirp", interface.slirp.is_some()),
        ("macvtap", interface.macvtap.is_some()),
        ("passt", interface.passt.is_some()),
    ];
    match old.into_iter().find_map(|(name, there)| there.then_some(name)) {
        Some(name) => Err(format!("{field}.{name}: this binding is not supported any more")),
        None => Err(format!("{field}: it has no binding")),
    }
}

fn masquerade(
    vmi: &VirtualMachineInstance,
    interface: &Interface,
    network: &Network,
    field: &str,
) -> Result<Masquerade, String> {
    let mut ports = Vec::new();
    for (index, port) in interface.ports.iter().flatten().enumerate() {
        let field = format!("{field}.ports[{index}]");
        let protocol = protocol(port.protocol.as_deref(), &field)?;
        ports.push(Ports::one(protocol, number(port.port, &field)?));
    }
    for (index, range) in interface.port_ranges.iter().flatten().enumerate() {
        let field = format!("{field}.portRanges[{index}]");
        let protocol = protocol(Some(&range.protocol), &field)?;
        ports.push(Ports { protocol, first: number(range.start, &field)?, last: number(range.end, &field)? });
    }
    let pod = network.pod.as_ref();
    let range4 = pod.and_then(|pod| pod.vm_network_cidr.as_deref()).filter(|range| !range.is_empty());
    let range6 = pod.and_then(|pod| pod.vm_i_pv6_network_cidr.as_deref()).filter(|range| !range.is_empty());
    let wrong =
        |range: &str| format!("the network {:?} has the range {range:?}, which is none", network.name);
    let transport = vmi.status.as_ref().and_then(|status| status.migration_transport.as_ref());
    Ok(Masquerade {
        ports,
        range4: range4.map(|range| range.parse().map_err(|_| wrong(range))).transpose()?,
        range6: range6.map(|range| range.parse().map_err(|_| wrong(range))).transpose()?,
        istio: has_istio(vmi),
        kept_ports: if transport == Some(&MigrationTransport::Unix) {
            Vec::new()
        } else {
            MIGRATION_PORTS.into()
        },
    })
}

fn has_istio(vmi: &VirtualMachineInstance) -> bool {
    let annotations = vmi.metadata.annotations.as_ref();
    let says = annotations.and_then(|annotations| annotations.get(istio::INJECT));
    says.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

fn protocol(name: Option<&str>, field: &str) -> Result<Protocol, String> {
    match name.unwrap_or_default().to_ascii_uppercase().as_str() {
        "" | "TCP" => Ok(Protocol::Tcp),
        "UDP" => Ok(Protocol::Udp),
        "SCTP" => Ok(Protocol::Sctp),
        other => Err(format!("{field}.protocol: {other:?} is no protocol")),
    }
}

fn number(port: i32, field: &str) -> Result<u16, String> {
    u16::try_from(port).ok().filter(|port| *port > 0).ok_or_else(|| format!("{field}: {port} is no port"))
}

/// A queue for each virtual CPU, where the VMI wants many and the card can have them.
fn queues(vmi: &VirtualMachineInstance, interface: &Interface) -> u32 {
    let model = interface.model.as_deref().unwrap_or_default();
    let virtio = model.is_empty() || model.starts_with("virtio");
    let many = vmi.spec.domain.devices.network_interface_multiqueue == Some(true);
    if many && virtio { virtual_cpus(vmi).clamp(1, MOST_QUEUES) } else { 1 }
}

fn virtual_cpus(vmi: &VirtualMachineInstance) -> u32 {
    let cpu = vmi.spec.domain.cpu.clone().unwrap_or_default();
    let given = [cpu.sockets, cpu.cores, cpu.threads];
    let given =
        given.map(|number| number.and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0));
    if given.iter().any(Option::is_some) {
        return given.into_iter().flatten().fold(1, u32::saturating_mul);
    }
    let resources = vmi.spec.domain.resources.as_ref();
    let limit = resources.and_then(|resources| resources.limits.as_ref()?.get("cpu"));
    let request = resources.and_then(|resources| resources.requests.as_ref()?.get("cpu"));
    let cpus = limit.or(request).and_then(|quantity| quantity.bytes().ok());
    cpus.and_then(|cpus| u32::try_from(cpus).ok()).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn vmi(interface: Value, networks: Value) -> VirtualMachineInstance {
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"networks": networks, "domain": {
                "cpu": {"cores": 2, "sockets": 2},
                "devices": {"networkInterfaceMultiqueue": true, "interfaces": [interface]},
            }},
            "status": {"interfaces": [{"name": "a", "mac": "02:00:00:00:00:05", "infoSource": "multus-status"}]},
        }))
        .unwrap()
    }

    fn one(interface: Value, networks: Value) -> Result<Option<InterfaceRequest>, String> {
        let requests = of(&vmi(interface, networks), &ClusterConfig::default(), |_| true)?;
        Ok(requests.into_iter().next())
    }

    #[test]
    fn reads_what_the_vmi_says() {
        let pod = json!([{"name": "a", "pod": {"vmNetworkCIDR": "10.11.12.0/24"}}]);
        let ports = json!([{"port": 80}, {"port": 53, "protocol": "UDP"}]);
        let request =
            one(json!({"name": "a", "masquerade": {}, "ports": ports}), pod.clone()).unwrap().unwrap();
        assert_eq!((request.primary, request.queues, request.place), (true, 4, 0));
        assert_eq!(request.owner, 107);
        assert_eq!(request.pod_interfaces, ["eth0"]);
        assert_eq!(request.mac.unwrap().to_string(), "02:00:00:00:00:05");
        let Binding::Masquerade(details) = request.binding else { panic!() };
        assert_eq!(details.ports, [Ports::one(Protocol::Tcp, 80), Ports::one(Protocol::Udp, 53)]);
        assert_eq!(details.range4.unwrap().to_string(), "10.11.12.0/24");
        assert_eq!(details.kept_ports, MIGRATION_PORTS);

        let other = json!([{"name": "x", "pod": {}}, {"name": "a", "multus": {"networkName": "n"}}]);
        let bridge = json!({"name": "a", "bridge": {}, "macAddress": "02:00:00:00:00:09", "model": "e1000"});
        let request = one(bridge, other).unwrap().unwrap();
        assert_eq!((request.primary, request.queues, request.binding), (false, 1, Binding::Bridge));
        assert_eq!(request.pod_interfaces, names::candidates("a", 1));
        assert_eq!(request.mac.unwrap().to_string(), "02:00:00:00:00:09");
    }

    #[test]
    fn a_tap_belongs_to_the_launcher_also_if_that_is_root() {
        let mut vmi = vmi(json!({"name": "a", "bridge": {}}), json!([{"name": "a", "pod": {}}]));
        vmi.status.as_mut().unwrap().runtime_user = Some(0);
        assert_eq!(of(&vmi, &ClusterConfig::default(), |_| true).unwrap()[0].owner, 0);
    }

    #[test]
    fn some_bindings_need_nothing_and_some_are_refused() {
        let pod = json!([{"name": "a", "pod": {}}]);
        assert_eq!(one(json!({"name": "a", "sriov": {}}), pod.clone()).unwrap(), None);
        assert_eq!(one(json!({"name": "a", "binding": {"name": "none"}}), pod.clone()).unwrap(), None);
        for (interface, expected) in [
            (json!({"name": "a"}), "spec.domain.devices.interfaces[0]: it has no binding"),
            (json!({"name": "a", "slirp": {}}), "interfaces[0].slirp: this binding is not supported"),
            (json!({"name": "b", "bridge": {}}), "there is no network \"b\""),
            (json!({"name": "a", "bridge": {}, "macAddress": "x"}), "interfaces[0].macAddress"),
            (
                json!({"name": "a", "masquerade": {}, "ports": [{"port": 0}]}),
                "interfaces[0].ports[0]: 0 is no port",
            ),
        ] {
            let error = one(interface.clone(), pod.clone()).unwrap_err();
            assert!(error.contains(expected), "{interface}: {error}");
        }
    }
}
