//! Writes rules the way nf_tables wants them: as little programs that load, compare and decide.

use std::net::IpAddr;

use super::{Chain, Match, Rule, Verdict};
use crate::{Ports, bytes::octets, netlink::Attributes};

const REGISTER: u32 = 1;
const VERDICT_REGISTER: u32 = 0;

const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;

const EQUAL: u32 = 0;
const AT_MOST: u32 = 3;
const AT_LEAST: u32 = 5;

const META_INPUT_NAME: u32 = 6;
const META_OUTPUT_NAME: u32 = 7;
const META_PROTOCOL: u32 = 16;

const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;

/// Writes all expressions of a rule.
pub fn expressions(rule: &Rule, out: &mut Attributes<'_>) {
    for condition in &rule.matches {
        write_match(condition, out);
    }
    expression(out, "counter", |data| {
        data.put(1, &0_u64.to_be_bytes());
        data.put(2, &0_u64.to_be_bytes());
    });
    match rule.verdict {
        Verdict::Masquerade => expression(out, "masq", |_| {}),
        Verdict::SourceNat(address) => nat(out, 0, address),
        Verdict::DestinationNat(address) => nat(out, 1, address),
        Verdict::Jump(chain) => verdict(out, -3, Some(chain)),
        Verdict::Return => verdict(out, -5, None),
    }
}

fn write_match(condition: &Match, out: &mut Attributes<'_>) {
    match condition {
        Match::From(name) => interface(out, META_INPUT_NAME, name),
        Match::To(name) => interface(out, META_OUTPUT_NAME, name),
        Match::Source(IpAddr::V4(a)) => header(out, NETWORK_HEADER, 12, &a.octets()),
        Match::Destination(IpAddr::V4(a)) => header(out, NETWORK_HEADER, 16, &a.octets()),
        Match::Source(IpAddr::V6(a)) => header(out, NETWORK_HEADER, 8, &a.octets()),
        Match::Destination(IpAddr::V6(a)) => header(out, NETWORK_HEADER, 24, &a.octets()),
        Match::Ports(ports) => write_ports(out, *ports),
    }
}

fn interface(out: &mut Attributes<'_>, key: u32, name: &str) {
    let mut padded = [0; 16];
    let length = name.len().min(padded.len());
    padded[..length].copy_from_slice(&name.as_bytes()[..length]);
    meta(out, key);
    compare(out, EQUAL, &padded);
}

fn write_ports(out: &mut Attributes<'_>, ports: Ports) {
    const DESTINATION_PORT: u32 = 2;
    meta(out, META_PROTOCOL);
    compare(out, EQUAL, &[ports.protocol.number()]);
    if ports.first == ports.last {
        return header(out, TRANSPORT_HEADER, DESTINATION_PORT, &ports.first.to_be_bytes());
    }
    load(out, TRANSPORT_HEADER, DESTINATION_PORT, 2);
    compare(out, AT_LEAST, &ports.first.to_be_bytes());
    compare(out, AT_MOST, &ports.last.to_be_bytes());
}

fn header(out: &mut Attributes<'_>, base: u32, offset: u32, value: &[u8]) {
    load(out, base, offset, value.len());
    compare(out, EQUAL, value);
}

fn load(out: &mut Attributes<'_>, base: u32, offset: u32, length: usize) {
    expression(out, "payload", |data| {
        data.put_number(1, REGISTER);
        data.put_number(2, base);
        data.put_number(3, offset);
        data.put_number(4, u32::try_from(length).unwrap_or_default());
    });
}

fn meta(out: &mut Attributes<'_>, key: u32) {
    expression(out, "meta", |data| {
        data.put_number(1, REGISTER);
        data.put_number(2, key);
    });
}

fn compare(out: &mut Attributes<'_>, operation: u32, value: &[u8]) {
    expression(out, "cmp", |data| {
        data.put_number(1, REGISTER);
        data.put_number(2, operation);
        data.nest(3, |operand| operand.put(DATA_VALUE, value));
    });
}

fn nat(out: &mut Attributes<'_>, kind: u32, address: IpAddr) {
    let family = if address.is_ipv4() { 2 } else { 10 };
    expression(out, "immediate", |data| {
        data.put_number(1, REGISTER);
        data.nest(2, |operand| operand.put(DATA_VALUE, &octets(address)));
    });
    expression(out, "nat", |data| {
        data.put_number(1, kind);
        data.put_number(2, family);
        data.put_number(3, REGISTER);
    });
}

fn verdict(out: &mut Attributes<'_>, code: i32, chain: Option<Chain>) {
    expression(out, "immediate", |data| {
        data.put_number(1, VERDICT_REGISTER);
        data.nest(2, |operand| {
            operand.nest(DATA_VERDICT, |verdict| {
                verdict.put_number(1, code.cast_unsigned());
                if let Some(chain) = chain {
                    verdict.put_text(2, chain.name());
                }
            });
        });
    });
}

fn expression(out: &mut Attributes<'_>, name: &str, fill: impl FnOnce(&mut Attributes<'_>)) {
    out.nest(LIST_ELEMENT, |element| {
        element.put_text(EXPRESSION_NAME, name);
        element.nest(EXPRESSION_DATA, fill);
    });
}
