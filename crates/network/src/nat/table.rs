//! Brings NAT rules into the kernel's table and finds them there again.
//!
//! The table `nat` may have other users, such as Istio. So each of our rules carries a comment, by which we
//! know it, and no other rule is touched.

use std::io;

use super::{Chain, Family, Rule, encode::expressions, fingerprint};
use crate::{
    bytes::array,
    netlink::{Attributes, Message, Socket, flag, nested, text},
};

const TABLE: &str = "nat";
const MARK: &str = "kubevirt ";

const SUBSYSTEM: u16 = 10;
const BEGIN: u16 = 0x10;
const END: u16 = 0x11;
const NEW_TABLE: u16 = kind(0);
const NEW_CHAIN: u16 = kind(3);
const NEW_RULE: u16 = kind(6);
const GET_RULE: u16 = kind(7);
const DELETE_RULE: u16 = kind(8);

const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_HANDLE: u16 = 3;
const RULE_EXPRESSIONS: u16 = 4;
const RULE_COMMENT: u16 = 7;

/// A rule of ours that is there.
struct Present {
    chain: Vec<u8>,
    handle: Vec<u8>,
    mark: String,
}

/// What our rules in the table say whose they are: the fingerprint of the whole, once for each rule.
pub fn marks(family: Family) -> io::Result<Vec<String>> {
    Ok(present(&mut Socket::netfilter()?, family)?.into_iter().map(|rule| rule.mark).collect())
}

/// Puts `rules` in the place of all our rules, at once.
pub fn replace(family: Family, rules: &[Rule]) -> io::Result<()> {
    let mut socket = Socket::netfilter()?;
    let mut changes = vec![add_table(family)];
    changes.extend(Chain::ALL.map(|chain| add_chain(family, chain)));
    changes.extend(present(&mut socket, family)?.iter().map(|rule| delete_rule(family, rule)));
    let mark = fingerprint(rules);
    changes.extend(rules.iter().map(|rule| add_rule(family, rule, &mark)));
    commit(&mut socket, changes)
}

/// Removes all our rules.
pub fn clear(family: Family) -> io::Result<()> {
    let mut socket = Socket::netfilter()?;
    let changes = present(&mut socket, family)?.iter().map(|rule| delete_rule(family, rule)).collect();
    commit(&mut socket, changes)
}

fn present(socket: &mut Socket, family: Family) -> io::Result<Vec<Present>> {
    let all = socket.dump(GET_RULE, &header(family))?;
    Ok(all.iter().filter_map(|reply| ours(reply.body.get(4..)?)).collect())
}

fn ours(rule: &[u8]) -> Option<Present> {
    if nested(rule, &[RULE_TABLE])? != text(TABLE) {
        return None;
    }
    Some(Present {
        chain: nested(rule, &[RULE_CHAIN])?.to_vec(),
        handle: array::<8>(nested(rule, &[RULE_HANDLE])?, 0)?.to_vec(),
        mark: read_comment(nested(rule, &[RULE_COMMENT])?)?.strip_prefix(MARK)?.to_owned(),
    })
}

fn commit(socket: &mut Socket, changes: Vec<Message>) -> io::Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let [high, low] = SUBSYSTEM.to_be_bytes();
    let frame = |kind| Message::new(kind, flag::REQUEST, &[0, 0, high, low]);
    socket.transaction(frame(BEGIN), changes, frame(END))
}

fn add_table(family: Family) -> Message {
    change(NEW_TABLE, flag::CREATE, family).with(1, &text(TABLE))
}

fn add_chain(family: Family, chain: Chain) -> Message {
    const NAME: u16 = 3;
    const HOOK: u16 = 4;
    const TYPE: u16 = 7;
    let message =
        change(NEW_CHAIN, flag::CREATE, family).with(1, &text(TABLE)).with(NAME, &text(chain.name()));
    let Some((hook, priority)) = chain.hook() else { return message };
    let fill = |out: &mut Attributes<'_>| {
        out.put_number(1, hook);
        out.put_number(2, priority.cast_unsigned());
    };
    message.with_nested(HOOK, fill).with(TYPE, &text("nat"))
}

fn add_rule(family: Family, rule: &Rule, mark: &str) -> Message {
    change(NEW_RULE, flag::CREATE | flag::APPEND, family)
        .with(RULE_TABLE, &text(TABLE))
        .with(RULE_CHAIN, &text(rule.chain.name()))
        .with_nested(RULE_EXPRESSIONS, |out| expressions(rule, out))
        .with(RULE_COMMENT, &comment(&format!("{MARK}{mark}")))
}

fn delete_rule(family: Family, rule: &Present) -> Message {
    change(DELETE_RULE, 0, family)
        .with(RULE_TABLE, &text(TABLE))
        .with(RULE_CHAIN, &rule.chain)
        .with(RULE_HANDLE, &rule.handle)
}

fn change(kind: u16, flags: u16, family: Family) -> Message {
    Message::new(kind, flag::REQUEST | flag::ACK | flags, &header(family))
}

fn header(family: Family) -> [u8; 4] {
    [if family == Family::V4 { 2 } else { 10 }, 0, 0, 0]
}

const fn kind(message: u16) -> u16 {
    SUBSYSTEM << 8 | message
}

/// A comment in the format of the program `nft`, which then shows it.
fn comment(value: &str) -> Vec<u8> {
    let value = text(value);
    let mut bytes = vec![0, u8::try_from(value.len()).unwrap_or(u8::MAX)];
    bytes.extend(value);
    bytes
}

fn read_comment(bytes: &[u8]) -> Option<&str> {
    let [0, _, value @ .., 0] = bytes else { return None };
    std::str::from_utf8(value).ok()
}
