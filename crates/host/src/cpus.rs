//! The CPUs that a container may use.

use std::path::Path;

use crate::cgroup::{Cgroups, Folder};
use crate::read::{self, ReadError};

/// More CPUs than any kernel knows; a list that goes beyond is not a list of CPUs.
const MOST: u32 = 1 << 16;

/// The CPUs of the container that this process is in, in order.
///
/// The control group says it. Where it does not, this thread's affinity does, which its owner may have narrowed.
pub fn of_container() -> Result<Vec<u32>, ReadError> {
    let cgroups = Cgroups::of_self()?;
    match of_cgroup(&cgroups) {
        Some(cpus) => Ok(cpus),
        None => read::parsed(Path::new("/proc/self/status"), parse_status),
    }
}

fn of_cgroup(cgroups: &Cgroups) -> Option<Vec<u32>> {
    let (folder, names) = match cgroups.folder("cpuset")? {
        Folder::V1(folder) => (folder, &["cpuset.effective_cpus", "cpuset.cpus"][..]),
        Folder::V2(folder) => (folder, &["cpuset.cpus.effective"][..]),
    };
    let lists = names.iter().filter_map(|name| read::parsed(&folder.join(name), parse_list).ok());
    lists.into_iter().find(|cpus| !cpus.is_empty())
}

fn parse_status(text: &str) -> Option<Vec<u32>> {
    read::field(text, "Cpus_allowed_list").and_then(parse_list)
}

/// Reads a list such as `0-3,8`; the result is sorted and has each CPU once.
pub fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// Writes a list such as `0-3,8`.
pub fn format_list(cpus: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus.iter().copied() {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let text = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn reads_lists() {
        for (text, expected) in [
            ("0\n", Some(vec![0])),
            ("0-3,8\n", Some(vec![0, 1, 2, 3, 8])),
            ("8, 0-1,1", Some(vec![0, 1, 8])),
            ("\n", Some(vec![])),
            ("3-1", None),
            ("0-4294967295", None),
            ("a", None),
            ("-1", None),
            ("1-2-3", None),
        ] {
            assert_eq!(parse_list(text), expected, "{text:?}");
        }
    }

    #[test]
    fn writes_lists() {
        for text in ["", "0", "0-3,8", "1,3,5-6", "4294967295"] {
            let cpus = parse_list(text).unwrap_or_else(|| vec![u32::MAX]);
            assert_eq!(format_list(&cpus), text);
        }
    }

    #[test]
    fn prefers_the_control_group() {
        for (files, kind, expected) in [
            (&[("cpuset.cpus.effective", "2-3\n")][..], "", Some(vec![2, 3])),
            (&[("cpuset.effective_cpus", "\n"), ("cpuset.cpus", "4\n")], "cpuset", Some(vec![4])),
            (&[("cpuset.effective_cpus", "5\n"), ("cpuset.cpus", "4-5\n")], "cpuset", Some(vec![5])),
            (&[("cpuset.cpus.effective", "\n")], "", None),
            (&[], "", None),
        ] {
            let folder = testing::Folder::of(files);
            let point = folder.path().display();
            let filesystem = if kind.is_empty() { "cgroup2" } else { "cgroup" };
            let mount = format!("1 0 0:1 / {point} rw - {filesystem} none rw,{kind}");
            let found = Cgroups::parse(&format!("1:{kind}:/\n"), &mount);
            assert_eq!(of_cgroup(&found), expected, "{files:?}");
        }
        assert_eq!(parse_status("Cpus_allowed:\t3\nCpus_allowed_list:\t0-1\n"), Some(vec![0, 1]));
    }

    #[test]
    fn finds_those_of_this_container() {
        let cpus = of_container().unwrap();
        println!("CPUs {}", format_list(&cpus));
        assert!(!cpus.is_empty());
    }
}
