//! The ports that are forwarded to the guest, one by one or in ranges.

use std::collections::HashSet;

use kubevirt_api::vmi::network::{Port, PortRange};

use super::Nic;
use crate::{Context, Gate, Path, Problems};

/// How many ranges an interface may list.
const MOST_RANGES: usize = 10;
const PROTOCOLS: [&str; 2] = ["TCP", "UDP"];

/// Checks ports and port ranges; on other networks than the pod's, nothing is forwarded and ports mean nothing.
pub fn check(cx: &Context<'_>, nic: &Nic<'_>, problems: &mut Problems) {
    let (interface, path) = (nic.interface, &nic.path);
    if let Some(ports) = interface.ports.as_deref().filter(|_| nic.on_pod_network()) {
        check_ports(&path.at("ports"), ports, problems);
    }
    let Some(ranges) = interface.port_ranges.as_deref() else { return };
    let name = &interface.name;
    if !cx.config.enabled(Gate::PortRangesSpec) {
        problems.invalid(
            &path.at("name"),
            format!("interface {name:?} has portRanges, but feature gate PortRangesSpec is off"),
        );
    } else if nic.on_pod_network() {
        if interface.ports.is_some() {
            problems.invalid(
                &path.at("name"),
                format!("interface {name:?} has both ports and portRanges: keep one of them"),
            );
        }
        if interface.masquerade.is_none() {
            problems.invalid(
                &path.at("name"),
                format!("interface {name:?} has portRanges, which work with masquerade only"),
            );
        }
        check_ranges(&path.at("portRanges"), ranges, problems);
    }
}

fn check_ports(list: &Path<'_>, ports: &[Port], problems: &mut Problems) {
    let mut names = HashSet::with_capacity(ports.len());
    for (index, port) in ports.iter().enumerate() {
        let path = list.index(index);
        if let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            if !names.insert(name) {
                problems.duplicate(&path.at("name"), format!("another port is named {name:?} already"));
            }
            if !is_port_name(name) {
                problems.invalid(
                    &path.at("name"),
                    format!(
                        "port name {name:?} must have 1 to 15 of a-z, 0-9 and single inner dashes, and a letter"
                    ),
                );
            }
        }
        match port.port {
            0 => problems.required(&path.at("port"), "a port number from 1 to 65535 is needed"),
            number if !is_port(number) => {
                problems.invalid(&path.at("port"), format!("port {number} is not between 1 and 65535"));
            }
            _ => {}
        }
        if let Some(protocol) =
            port.protocol.as_deref().filter(|text| !text.is_empty() && !PROTOCOLS.contains(text))
        {
            problems.invalid(
                &path.at("protocol"),
                format!("protocol {protocol:?} is unknown; choose TCP or UDP"),
            );
        }
    }
}

fn check_ranges(list: &Path<'_>, ranges: &[PortRange], problems: &mut Problems) {
    if ranges.len() > MOST_RANGES {
        problems
            .invalid(list, format!("{} port ranges are too many; {MOST_RANGES} can be listed", ranges.len()));
        return;
    }
    let mut sound: Vec<&PortRange> = Vec::with_capacity(ranges.len());
    for (index, range) in ranges.iter().enumerate() {
        let path = list.index(index);
        let PortRange { protocol, start, end } = range;
        if !PROTOCOLS.contains(&protocol.as_str()) {
            problems.invalid(
                &path.at("protocol"),
                format!("protocol {protocol:?} is unknown; choose TCP or UDP"),
            );
        } else if !is_port(*start) {
            problems.invalid(&path.at("start"), format!("port {start} is not between 1 and 65535"));
        } else if !is_port(*end) {
            problems.invalid(&path.at("end"), format!("port {end} is not between 1 and 65535"));
        } else if start > end {
            problems
                .invalid(&path.at("start"), format!("the range starts at {start}, after its end at {end}"));
        } else {
            sound.push(range);
        }
    }
    sound.sort_unstable_by_key(|range| (&range.protocol, range.start, range.end));
    for (one, next) in sound.iter().zip(sound.iter().skip(1)) {
        if one.protocol == next.protocol && next.start <= one.end {
            problems.invalid(
                list,
                format!(
                    "{} ranges {}-{} and {}-{} overlap: merge them",
                    one.protocol, one.start, one.end, next.start, next.end
                ),
            );
        }
    }
}

fn is_port(number: i32) -> bool {
    (1..=65535).contains(&number)
}

/// Whether the text can name a port of a Kubernetes service.
fn is_port_name(text: &str) -> bool {
    let characters =
        text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let dashes = text.contains("--") || text.starts_with('-') || text.ends_with('-');
    text.len() <= 15 && characters && !dashes && text.bytes().any(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{refused, refused_in, with_interface};
    use crate::testing::World;

    const NIC: &str = "spec.domain.devices.interfaces[0]";

    fn expect(world: &World, case: &str, patch: &Value, fields: &[&str]) {
        let fields: Vec<String> = fields.iter().map(|field| format!("{NIC}.{field}")).collect();
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        refused_in(world, case, with_interface(patch), &fields);
    }

    #[test]
    fn ports_have_a_number_a_protocol_and_a_name_of_their_own() {
        let cases = [
            ("none", json!([]), &[][..]),
            ("a port", json!([{ "port": 80 }]), &[]),
            (
                "all",
                json!([{ "port": 1, "name": "a", "protocol": "TCP" }, { "port": 65535, "protocol": "UDP" }]),
                &[],
            ),
            ("the same port twice", json!([{ "port": 80 }, { "port": 80 }]), &[]),
            ("no names", json!([{ "port": 80, "name": "" }, { "port": 81, "name": "" }]), &[]),
            ("no protocol", json!([{ "port": 80, "protocol": "" }]), &[]),
            ("zero", json!([{ "port": 0 }]), &["ports[0].port"]),
            ("negative", json!([{ "port": -1 }]), &["ports[0].port"]),
            ("too high", json!([{ "port": 80 }, { "port": 65536 }]), &["ports[1].port"]),
            ("small letters", json!([{ "port": 80, "protocol": "tcp" }]), &["ports[0].protocol"]),
            ("another protocol", json!([{ "port": 80, "protocol": "SCTP" }]), &["ports[0].protocol"]),
            (
                "a name twice",
                json!([{ "port": 80, "name": "a" }, { "port": 81, "name": "a" }]),
                &["ports[1].name"],
            ),
            ("a long name", json!([{ "port": 80, "name": "sixteen-letters-" }]), &["ports[0].name"]),
            ("capitals", json!([{ "port": 80, "name": "Http" }]), &["ports[0].name"]),
            ("digits only", json!([{ "port": 80, "name": "80" }]), &["ports[0].name"]),
            ("a double dash", json!([{ "port": 80, "name": "a--b" }]), &["ports[0].name"]),
            ("an outer dash", json!([{ "port": 80, "name": "-a" }]), &["ports[0].name"]),
            ("a dash at the end", json!([{ "port": 80, "name": "a-" }]), &["ports[0].name"]),
            (
                "a bad name twice",
                json!([{ "port": 80, "name": "A" }, { "port": 81, "name": "A" }]),
                &["ports[0].name", "ports[1].name", "ports[1].name"],
            ),
        ];
        for (case, ports, expected) in cases {
            expect(&World::default(), case, &json!({ "ports": ports }), expected);
        }
    }

    #[test]
    fn ports_of_other_networks_mean_nothing() {
        let patch = json!({
            "networks": [{ "name": "lan", "multus": { "networkName": "lan" } }],
            "domain": { "devices": { "interfaces": [{ "name": "lan", "bridge": {}, "ports": [{ "port": 0 }] }] } },
        });
        refused("lan", patch, &[]);
    }

    #[test]
    fn port_ranges_need_their_gate() {
        expect(&World::default(), "off", &json!({ "portRanges": [] }), &["name"]);
    }

    #[test]
    fn port_ranges_are_ordered_and_apart() {
        let range = |protocol: &str, start: i32, end: i32| json!({ "protocol": protocol, "start": start, "end": end });
        let many: Vec<Value> = (1..=11).map(|i| range("TCP", i * 10, i * 10 + 5)).collect();
        let cases = [
            ("one", json!([range("TCP", 80, 90)]), &[][..]),
            ("a single port", json!([range("UDP", 65535, 65535)]), &[]),
            ("apart", json!([range("TCP", 91, 99), range("TCP", 80, 90)]), &[]),
            ("over protocols", json!([range("TCP", 80, 90), range("UDP", 80, 90)]), &[]),
            ("overlap", json!([range("TCP", 80, 90), range("TCP", 90, 99)]), &["portRanges"]),
            (
                "three in a row",
                json!([range("TCP", 1, 5), range("TCP", 9, 12), range("TCP", 5, 9)]),
                &["portRanges", "portRanges"],
            ),
            ("ten", json!(many[..10]), &[]),
            ("eleven", json!(many), &["portRanges"]),
            ("no protocol", json!([range("", 80, 90)]), &["portRanges[0].protocol"]),
            ("start at zero", json!([range("TCP", 0, 90)]), &["portRanges[0].start"]),
            ("start too high", json!([range("TCP", 65536, 65536)]), &["portRanges[0].start"]),
            ("end at zero", json!([range("TCP", 80, 0)]), &["portRanges[0].end"]),
            ("end too high", json!([range("TCP", 80, 70000)]), &["portRanges[0].end"]),
            ("backwards", json!([range("TCP", 80, 70)]), &["portRanges[0].start"]),
        ];
        let world = World::default().with_gates(&["PortRangesSpec"]);
        for (case, ranges, expected) in cases {
            expect(&world, case, &json!({ "portRanges": ranges }), expected);
        }
        expect(&world, "with ports", &json!({ "ports": [], "portRanges": [] }), &["name"]);
        expect(
            &world,
            "with a bridge",
            &json!({ "masquerade": null, "bridge": {}, "portRanges": [] }),
            &["name"],
        );
    }
}
