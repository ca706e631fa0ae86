//! The changes that phase 1 knows.

use std::fmt;

use ipnet::IpNet;

use crate::{
    Mac,
    nat::{Family, Rule},
};

/// One change to a pod's network; its text says what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step(pub(super) Change);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    AddBridge {
        name: String,
        mac: Mac,
    },
    AddTap {
        name: String,
        multi_queue: bool,
        owner: u32,
    },
    /// A link that is never up and only keeps what the pod's interface had, for those who look for it.
    AddStandIn {
        name: String,
        mac: Mac,
    },
    Rename {
        link: String,
        to: String,
    },
    SetMac {
        link: String,
        mac: Mac,
    },
    SetMtu {
        link: String,
        mtu: u32,
    },
    Attach {
        link: String,
        bridge: String,
    },
    StopLearning {
        link: String,
    },
    AddAddress {
        link: String,
        address: IpNet,
    },
    RemoveAddress {
        link: String,
        address: IpNet,
    },
    Up {
        link: String,
    },
    Down {
        link: String,
    },
    Set {
        key: String,
        value: String,
    },
    SetRules {
        family: Family,
        rules: Vec<Rule>,
    },
    ClearRules {
        family: Family,
    },
    Remove {
        link: String,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Change::AddBridge { name, mac } => write!(f, "add bridge {name} with {mac}"),
            Change::AddTap { name, multi_queue, owner } => {
                let queues = if *multi_queue { "many queues" } else { "one queue" };
                write!(f, "add tap {name} of user {owner} with {queues}")
            }
            Change::AddStandIn { name, mac } => write!(f, "add stand-in {name} with {mac}"),
            Change::Rename { link, to } => write!(f, "rename {link} to {to}"),
            Change::SetMac { link, mac } => write!(f, "set hardware address of {link} to {mac}"),
            Change::SetMtu { link, mtu } => write!(f, "set MTU of {link} to {mtu}"),
            Change::Attach { link, bridge } => write!(f, "attach {link} to {bridge}"),
            Change::StopLearning { link } => write!(f, "stop learning from {link}"),
            Change::AddAddress { link, address } => write!(f, "add {address} to {link}"),
            Change::RemoveAddress { link, address } => write!(f, "remove {address} from {link}"),
            Change::Up { link } => write!(f, "set {link} up"),
            Change::Down { link } => write!(f, "set {link} down"),
            Change::Set { key, value } => write!(f, "set {key} to {value}"),
            Change::SetRules { family, rules } => write!(f, "set {} rules of {family} nat", rules.len()),
            Change::ClearRules { family } => write!(f, "clear the rules of {family} nat"),
            Change::Remove { link } => write!(f, "remove {link}"),
        }
    }
}
