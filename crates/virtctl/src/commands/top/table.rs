//! The table: what each machine uses, as lines of a terminal.

use std::cmp::Ordering;

use super::metrics::{Cpu, Usage};

/// A machine and what it uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The node that it is on.
    pub node: String,
    /// Its state in one word.
    pub status: String,
    /// The CPUs that it has.
    pub cpus: u64,
    /// The bytes of memory that it has.
    pub memory: Option<u64>,
    /// What it uses right now.
    pub rates: Rates,
}

/// What is used per second, or right now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// CPUs.
    pub cpu: Option<f64>,
    /// Bytes of memory.
    pub memory: Option<f64>,
    /// Bytes read per second.
    pub read: Option<f64>,
    /// Bytes written per second.
    pub written: Option<f64>,
    /// Bytes received per second.
    pub received: Option<f64>,
    /// Bytes sent per second.
    pub sent: Option<f64>,
}

impl Rates {
    /// From two looks that are some seconds apart. A total that shrank began anew.
    pub fn between(before: Option<&Usage>, now: &Usage, seconds: f64) -> Self {
        let rate = |before: Option<f64>, now: Option<f64>| {
            let (before, now) = (before?, now?);
            (seconds > 0.0).then(|| if now >= before { (now - before) / seconds } else { now / seconds })
        };
        let total = |cpu: Option<Cpu>| match cpu {
            Some(Cpu::Seconds(total)) => Some(total),
            _ => None,
        };
        let cpu = match now.cpu {
            Some(Cpu::Cores(cores)) => Some(cores),
            Some(Cpu::Seconds(_)) => rate(before.and_then(|usage| total(usage.cpu)), total(now.cpu)),
            None => None,
        };
        Self {
            cpu,
            memory: now.memory,
            read: rate(before.and_then(|usage| usage.read), now.read),
            written: rate(before.and_then(|usage| usage.written), now.written),
            received: rate(before.and_then(|usage| usage.received), now.received),
            sent: rate(before.and_then(|usage| usage.sent), now.sent),
        }
    }
}

/// What rows are sorted by, the most first; names by the alphabet.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum SortBy {
    /// CPUs in use.
    #[default]
    Cpu,
    /// Memory in use.
    Memory,
    /// Bytes to and from disks.
    Disk,
    /// Bytes to and from networks.
    Network,
    /// Namespace and name.
    Name,
}

/// Sorts rows; those that use the same stay in the order of their names.
pub fn sort(rows: &mut [Row], by: SortBy) {
    let sum = |one: Option<f64>, other: Option<f64>| one.unwrap_or(-1.0) + other.unwrap_or(-1.0);
    let key = |row: &Row| match by {
        SortBy::Cpu => row.rates.cpu.unwrap_or(-1.0),
        SortBy::Memory => row.rates.memory.unwrap_or(-1.0),
        SortBy::Disk => sum(row.rates.read, row.rates.written),
        SortBy::Network => sum(row.rates.received, row.rates.sent),
        SortBy::Name => 0.0,
    };
    rows.sort_by(|a, b| {
        let most = key(b).partial_cmp(&key(a)).unwrap_or(Ordering::Equal);
        most.then_with(|| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)))
    });
}

/// The table, with columns as wide as what is in them.
pub fn render(rows: &[Row], namespaces: bool) -> Vec<String> {
    let mut titles = vec!["NAME", "STATUS", "NODE", "CPU", "MEMORY", "DISK READ", "WRITE", "NET IN", "OUT"];
    if namespaces {
        titles.insert(0, "NAMESPACE");
    }
    let mut lines: Vec<Vec<String>> = vec![titles.iter().map(ToString::to_string).collect()];
    for row in rows {
        let mut line = vec![row.name.clone(), row.status.clone(), dash(&row.node)];
        line.push(match row.rates.cpu {
            Some(cpu) => format!("{cpu:.2}/{}", row.cpus),
            None => format!("-/{}", row.cpus),
        });
        let used = row.rates.memory.map_or("-".to_owned(), size);
        line.push(match row.memory {
            Some(all) => format!("{used}/{}", size(all as f64)),
            None => used,
        });
        let rates = [row.rates.read, row.rates.written, row.rates.received, row.rates.sent];
        line.extend(rates.map(|rate| rate.map_or("-".to_owned(), |rate| format!("{}/s", size(rate)))));
        if namespaces {
            line.insert(0, row.namespace.clone());
        }
        lines.push(line);
    }
    align(&lines)
}

fn dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

fn align(lines: &[Vec<String>]) -> Vec<String> {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |cells: &Vec<String>| {
        let padded: Vec<String> =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        padded.join("   ").trim_end().to_owned()
    };
    lines.iter().map(line).collect()
}

/// Bytes in the unit in which they are a number of up to four digits.
pub fn size(bytes: f64) -> String {
    const UNITS: [&str; 6] = ["B", "Ki", "Mi", "Gi", "Ti", "Pi"];
    let mut value = bytes.max(0.0);
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 10.0 && value.fract() > 0.05);
    format!("{value:.digits$}{}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, cpu: Option<f64>) -> Row {
        Row {
            namespace: "ns".into(),
            name: name.into(),
            node: "n1".into(),
            status: "Running".into(),
            cpus: 2,
            memory: Some(2 << 30),
            rates: Rates { cpu, memory: cpu.map(|_| 1.5e9), read: cpu.map(|_| 2048.0), ..Rates::default() },
        }
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, expected) in [
            (0.0, "0B"),
            (1023.0, "1023B"),
            (1024.0, "1Ki"),
            (1536.0, "1.5Ki"),
            (20.0 * 1024.0 * 1024.0, "20Mi"),
            (2_147_483_648.0, "2Gi"),
            (-1.0, "0B"),
        ] {
            assert_eq!(size(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn rows_are_aligned_and_sorted() {
        let mut rows = [row("b", None), row("a", Some(0.5)), row("longer", Some(1.25))];
        sort(&mut rows, SortBy::Cpu);
        assert_eq!(
            render(&rows, false),
            [
                "NAME     STATUS    NODE   CPU      MEMORY      DISK READ   WRITE   NET IN   OUT",
                "longer   Running   n1     1.25/2   1.4Gi/2Gi   2Ki/s       -       -        -",
                "a        Running   n1     0.50/2   1.4Gi/2Gi   2Ki/s       -       -        -",
                "b        Running   n1     -/2      -/2Gi       -           -       -        -",
            ]
        );
        sort(&mut rows, SortBy::Name);
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "longer"]);
        assert!(render(&rows, true)[0].starts_with("NAMESPACE   NAME"));
    }

    #[test]
    fn rates_come_from_two_looks() {
        let usage =
            |cpu, read| Usage { cpu: Some(cpu), read: Some(read), memory: Some(7.0), ..Usage::default() };
        let before = usage(Cpu::Seconds(10.0), 1000.0);
        let now = usage(Cpu::Seconds(11.0), 3000.0);
        let rates = Rates::between(Some(&before), &now, 2.0);
        assert_eq!(
            (rates.cpu, rates.read, rates.memory, rates.sent),
            (Some(0.5), Some(1000.0), Some(7.0), None)
        );
        let first = Rates::between(None, &now, 2.0);
        assert_eq!((first.cpu, first.memory), (None, Some(7.0)));
        let restarted = Rates::between(Some(&now), &before, 2.0);
        assert_eq!(restarted.read, Some(500.0));
        let known = usage(Cpu::Cores(0.3), 0.0);
        assert_eq!(Rates::between(None, &known, 0.0).cpu, Some(0.3));
    }
}
