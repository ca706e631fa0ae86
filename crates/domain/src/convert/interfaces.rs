//! Network cards that are wired to taps or sockets; virtual functions are host devices.

use kubevirt_api::names::external::istio;
use kubevirt_api::vmi::network::{Interface as InterfaceSpec, InterfaceState};

use super::{Conversion, text};
use crate::domain::Architecture;
use crate::domain::network::{ForwardedPorts, Interface, NetBackend, NicModel, Ports};
use crate::facts::InterfaceFacts;
use crate::pci::Role;

/// Most queues of a tap device.
const MAX_QUEUES: u32 = 256;
/// Ports of a pod that Istio's proxy listens on itself.
const PROXY_PORTS: [u16; 10] = [15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090];

/// All cards that the machine has now.
pub(super) fn convert(c: &mut Conversion<'_>) -> Vec<Interface> {
    let all = c.spec.devices.interfaces.as_deref().unwrap_or_default();
    let mut cards = Vec::new();
    let plain = all.iter().enumerate().filter(|(_, interface)| interface.sriov.is_none());
    for (place, (index, interface)) in (0..).zip(plain) {
        let pending = c.host.interfaces.get(&interface.name).is_some_and(|facts| facts.pending);
        if interface.state != Some(InterfaceState::Absent) && !pending {
            let field = format!("spec.domain.devices.interfaces[{index}]");
            cards.extend(one(c, &field, Role::Interface(place), interface));
        }
    }
    cards
}

fn one(c: &mut Conversion<'_>, field: &str, role: Role, interface: &InterfaceSpec) -> Option<Interface> {
    if !c.vmi.spec.networks.iter().flatten().any(|network| network.name == interface.name) {
        c.unsupported(field, format_args!("there is no network {:?}", interface.name));
    }
    let facts = c.host.interfaces.get(&interface.name).cloned().unwrap_or_default();
    let model = model(c, field, interface)?;
    let backend = backend(c, field, interface, &facts)?;
    let many = model == NicModel::Virtio && c.spec.devices.network_interface_multiqueue == Some(true);
    let queues = if many { c.topology.vcpus().clamp(1, MAX_QUEUES) } else { 1 };
    if let NetBackend::Tap { fds, .. } = &backend
        && !fds.is_empty()
        && fds.len() != queues as usize
    {
        let reason = format_args!("the card has {queues} queues and its tap device {}", fds.len());
        c.unsupported(field, reason);
    }
    Some(Interface {
        name: interface.name.clone(),
        model,
        mac: mac(c, field, interface, &facts),
        backend,
        address: c.place(field, role),
        boot_index: interface.boot_order.and_then(|order| u32::try_from(order).ok()),
        acpi_index: interface
            .acpi_index
            .and_then(|index| u32::try_from(index).ok())
            .filter(|index| *index > 0),
        link_up: link_up(c, field, interface),
        mtu: facts.mtu.filter(|_| model == NicModel::Virtio),
        queues,
    })
}

fn model(c: &mut Conversion<'_>, field: &str, interface: &InterfaceSpec) -> Option<NicModel> {
    let field = format!("{field}.model");
    let model = match interface.model.as_deref().unwrap_or("virtio") {
        "" | "virtio" => NicModel::Virtio,
        "e1000" => NicModel::E1000,
        "e1000e" => NicModel::E1000e,
        "igb" => {
            c.require_qemu(&field, "igb", (8, 0));
            NicModel::Igb
        }
        "ne2k_pci" => NicModel::Ne2kPci,
        "pcnet" => NicModel::Pcnet,
        "rtl8139" => NicModel::Rtl8139,
        other => {
            c.unsupported(field, format_args!("{other:?} is not known"));
            return None;
        }
    };
    if c.architecture == Architecture::S390x && model != NicModel::Virtio {
        c.unsupported(field, "s390x has virtio cards only");
    }
    Some(model)
}

fn backend(
    c: &mut Conversion<'_>,
    field: &str,
    interface: &InterfaceSpec,
    facts: &InterfaceFacts,
) -> Option<NetBackend> {
    let removed = [
        ("slirp", interface.slirp.is_some()),
        ("macvtap", interface.macvtap.is_some()),
        ("passt", interface.passt.is_some()),
    ];
    if let Some((name, _)) = removed.into_iter().find(|(_, asked)| *asked) {
        c.unsupported(format!("{field}.{name}"), "this binding was removed");
        return None;
    }
    if interface.passt_binding.is_some() {
        let socket = c.layout.machine(c.uid(), &format!("passt-{}.sock", interface.name));
        let ports = forwarded_ports(c, field, interface);
        return Some(NetBackend::VhostUser { socket, ports });
    }
    if let Some(name) = text(&facts.tap) {
        let vhost = c.host.vhost_net;
        return Some(NetBackend::Tap { name, fds: facts.fds.clone(), vhost });
    }
    let reason = match &interface.binding {
        Some(plugin) => {
            format!("the binding plugin {:?} makes no tap device; others are not supported", plugin.name)
        }
        None => "it has no tap device".to_owned(),
    };
    c.unsupported(field, reason);
    None
}

/// The ports that a user-space switch passes on: those that the VMI lists, else all but those of a proxy in the pod.
fn forwarded_ports(c: &mut Conversion<'_>, field: &str, interface: &InterfaceSpec) -> ForwardedPorts {
    let annotation = c.vmi.metadata.annotations.as_ref().and_then(|all| all.get(istio::INJECT));
    let has_proxy = annotation.is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let listed = interface.ports.as_deref().unwrap_or_default();
    if listed.is_empty() && !has_proxy {
        return ForwardedPorts::default();
    }
    let (mut tcp, mut udp) = (Vec::new(), Vec::new());
    for (index, port) in listed.iter().enumerate() {
        let field = format!("{field}.ports[{index}]");
        let Some(number) = u16::try_from(port.port).ok().filter(|number| *number > 0) else {
            c.unsupported(format!("{field}.port"), format_args!("{} is no port", port.port));
            continue;
        };
        match port.protocol.as_deref().unwrap_or_default().to_lowercase().as_str() {
            "" | "tcp" if has_proxy && PROXY_PORTS.contains(&number) => {
                c.unsupported(format!("{field}.port"), "the proxy in the pod needs it");
            }
            "" | "tcp" => tcp.push(number),
            "udp" => udp.push(number),
            other => c.unsupported(format!("{field}.protocol"), format_args!("{other:?} is not known")),
        }
    }
    let tcp = match listed.is_empty() {
        true => Ports::AllBut { ports: PROXY_PORTS.to_vec() },
        false => Ports::Only { ports: tcp },
    };
    ForwardedPorts { tcp, udp: Ports::Only { ports: udp } }
}

/// The VMI's address, the network's, the one it had before, or one that follows from its name.
fn mac(c: &mut Conversion<'_>, field: &str, interface: &InterfaceSpec, facts: &InterfaceFacts) -> String {
    let known = c.vmi.status.iter().flat_map(|status| status.interfaces.iter().flatten());
    let before =
        known.filter(|status| status.name.as_ref() == Some(&interface.name)).find_map(|it| text(&it.mac));
    let chosen = text(&interface.mac_address).or(text(&facts.mac)).or(before);
    let mac = chosen.unwrap_or_else(|| derived(c.uid(), &interface.name)).to_lowercase().replace('-', ":");
    let is_byte = |part: &str| part.len() == 2 && u8::from_str_radix(part, 16).is_ok();
    if mac.split(':').count() != 6 || !mac.split(':').all(is_byte) {
        c.unsupported(format!("{field}.macAddress"), format_args!("{mac:?} is no hardware address"));
    }
    mac
}

/// A locally administered address from a hash of machine and card (FNV-1a).
fn derived(uid: &str, name: &str) -> String {
    let hash = format!("{uid}/{name}").bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let [_, _, _, a, b, c, d, e] = hash.to_be_bytes();
    format!("02:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}")
}

fn link_up(c: &mut Conversion<'_>, field: &str, interface: &InterfaceSpec) -> bool {
    match &interface.state {
        Some(InterfaceState::Down) => false,
        Some(InterfaceState::Other(other)) if !other.is_empty() => {
            c.unsupported(format!("{field}.state"), format_args!("{other:?} is not known"));
            true
        }
        _ => true,
    }
}
