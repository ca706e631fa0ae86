//! What virt-handlers measure, read from the text that Prometheus reads.

use std::collections::BTreeMap;

/// What a machine has used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// CPU, as a total or as a rate.
    pub cpu: Option<Cpu>,
    /// Bytes of memory.
    pub memory: Option<f64>,
    /// Bytes that were read from disks, in total.
    pub read: Option<f64>,
    /// Bytes that were written to disks, in total.
    pub written: Option<f64>,
    /// Bytes that came from networks, in total.
    pub received: Option<f64>,
    /// Bytes that went to networks, in total.
    pub sent: Option<f64>,
}

/// CPU time comes as a total, or as the rate that somebody else has worked out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cpu {
    /// Seconds since the guest began.
    Seconds(f64),
    /// CPUs in use.
    Cores(f64),
}

/// Which machine: its namespace and its name.
pub type Key = (String, String);

/// Adds what a text says to what is known; what it cannot say is left out.
pub fn add(text: &str, known: &mut BTreeMap<Key, Usage>) {
    for line in text.lines() {
        let Some((name, labels, value)) = sample(line) else { continue };
        let label = |key: &str| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone());
        let (Some(namespace), Some(machine)) = (label("namespace"), label("name")) else { continue };
        let field: fn(&mut Usage) -> &mut Option<f64> = match name {
            "kubevirt_vmi_cpu_usage_seconds_total" => {
                known.entry((namespace, machine)).or_default().cpu = Some(Cpu::Seconds(value));
                continue;
            }
            "kubevirt_vmi_memory_resident_bytes" => |usage| &mut usage.memory,
            "kubevirt_vmi_storage_read_traffic_bytes_total" => |usage| &mut usage.read,
            "kubevirt_vmi_storage_write_traffic_bytes_total" => |usage| &mut usage.written,
            "kubevirt_vmi_network_receive_bytes_total" => |usage| &mut usage.received,
            "kubevirt_vmi_network_transmit_bytes_total" => |usage| &mut usage.sent,
            _ => continue,
        };
        // There is a line for each disk and each interface.
        *field(known.entry((namespace, machine)).or_default()).get_or_insert(0.0) += value;
    }
}

type Labels<'a> = Vec<(&'a str, String)>;

/// `name{label="value",…} value [time]`
fn sample(line: &str) -> Option<(&str, Labels<'_>, f64)> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let (name, mut rest) = line.split_once('{')?;
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            let value = after.split_whitespace().next()?.parse().ok()?;
            return Some((name, labels, value));
        }
        let (label, after) = rest.split_once("=\"")?;
        let (value, after) = quoted(after)?;
        labels.push((label, value));
        rest = after;
    }
}

/// The text up to the closing quote, and what comes after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_added_up_by_machine() {
        let text = r#"
# HELP kubevirt_vmi_cpu_usage_seconds_total of a guest
# TYPE kubevirt_vmi_cpu_usage_seconds_total counter
kubevirt_vmi_cpu_usage_seconds_total{node="n",namespace="ns",name="a"} 12.5
kubevirt_vmi_memory_resident_bytes{node="n",namespace="ns",name="a"} 1e+09 1700000000
kubevirt_vmi_storage_read_traffic_bytes_total{namespace="ns",name="a",drive="vda"} 10
kubevirt_vmi_storage_read_traffic_bytes_total{namespace="ns",name="a",drive="v\"d, b}"} 5
kubevirt_vmi_network_transmit_bytes_total{namespace="ns",name="b",interface="eth0"} 7
kubevirt_vmi_network_transmit_bytes_total{namespace="ns"} 7
go_goroutines 5
nonsense{
"#;
        let mut known = BTreeMap::new();
        add(text, &mut known);
        let key = |name: &str| ("ns".to_owned(), name.to_owned());
        let a =
            Usage { cpu: Some(Cpu::Seconds(12.5)), memory: Some(1e9), read: Some(15.0), ..Usage::default() };
        let b = Usage { sent: Some(7.0), ..Usage::default() };
        assert_eq!(known, BTreeMap::from([(key("a"), a), (key("b"), b)]));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in ".{0,200}") {
            add(&text, &mut BTreeMap::new());
        }
    }
}
