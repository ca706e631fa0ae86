//! What goes over a monitor's socket: one JSON object a line.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::error::ErrorClass;

/// QEMU's first words.
#[derive(Debug, Deserialize)]
pub(crate) struct Hello {
    #[serde(rename = "QMP")]
    pub(crate) greeting: Greeting,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Greeting {
    pub(crate) version: Version,
    #[serde(default)]
    pub(crate) capabilities: Vec<Value>,
}

/// Which QEMU it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Version {
    qemu: Triple,
    /// The distribution's own version of the package, if any.
    #[serde(default)]
    pub package: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Triple {
    major: u32,
    minor: u32,
    micro: u32,
}

impl Version {
    /// Its first two numbers.
    pub fn major_minor(&self) -> (u32, u32) {
        (self.qemu.major, self.qemu.minor)
    }

    /// Whether this QEMU is at least this old, as in `at_least(7, 2)`.
    pub fn at_least(&self, major: u32, minor: u32) -> bool {
        self.major_minor() >= (major, minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.qemu.major, self.qemu.minor, self.qemu.micro)
    }
}

/// One request. Urgent ones overtake those that wait for the main loop.
#[derive(Serialize)]
pub(crate) struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) execute: Option<&'a str>,
    #[serde(rename = "exec-oob", skip_serializing_if = "Option::is_none")]
    pub(crate) urgent: Option<&'a str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) arguments: Value,
    pub(crate) id: u64,
}

/// What QEMU says after its greeting.
#[derive(Debug)]
pub(crate) enum Said {
    Reply { id: u64, result: Result<Value, Refusal> },
    Event { name: String, data: Value, at: SystemTime },
    Unreadable,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) class: ErrorClass,
    pub(crate) desc: String,
}

#[derive(Deserialize)]
struct Line {
    id: Option<u64>,
    #[serde(rename = "return", default, deserialize_with = "present")]
    returned: Option<Value>,
    error: Option<Refusal>,
    event: Option<String>,
    #[serde(default)]
    data: Value,
    timestamp: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Timestamp {
    seconds: i64,
    microseconds: i64,
}

/// Keeps `"return": null` apart from no return at all.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

pub(crate) fn read(line: &[u8]) -> Said {
    match serde_json::from_slice(line) {
        Ok(Line { event: Some(name), data, timestamp, .. }) => {
            Said::Event { name, data, at: when(timestamp) }
        }
        Ok(Line { id: Some(id), error: Some(refusal), .. }) => Said::Reply { id, result: Err(refusal) },
        Ok(Line { id: Some(id), returned: Some(value), .. }) => Said::Reply { id, result: Ok(value) },
        _ => Said::Unreadable,
    }
}

/// QEMU's clock, or ours where QEMU could not read its own (it then says -1).
fn when(timestamp: Option<Timestamp>) -> SystemTime {
    let told = timestamp.and_then(|told| {
        let seconds = Duration::from_secs(u64::try_from(told.seconds).ok()?);
        let fraction = Duration::from_micros(u64::try_from(told.microseconds).ok()?);
        SystemTime::UNIX_EPOCH.checked_add(seconds.checked_add(fraction)?)
    });
    told.unwrap_or_else(SystemTime::now)
}

/// The start of a line, to show to people.
pub(crate) fn excerpt(line: &[u8]) -> String {
    const SHOWN: usize = 200;
    let text = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]).into_owned();
    if line.len() > SHOWN { text + "…" } else { text }
}
