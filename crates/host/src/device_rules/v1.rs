//! Version 1: a list that can be read and added to.

use std::io::{self, Write};
use std::path::Path;

use super::{Access, Rule};

/// Adds what is missing in the list.
pub fn allow(folder: &Path, devices: &[Rule]) -> io::Result<bool> {
    let list = std::fs::read_to_string(folder.join("devices.list"))?;
    let missing = devices.iter().filter(|rule| !list.lines().any(|line| covers(line, rule)));
    write(&folder.join("devices.allow"), missing)
}

/// Takes what is there off the list.
pub fn deny(folder: &Path, devices: &[Rule]) -> io::Result<bool> {
    let list = std::fs::read_to_string(folder.join("devices.list"))?;
    let there = devices.iter().filter(|rule| list.lines().any(|line| line == written(rule)));
    write(&folder.join("devices.deny"), there)
}

/// The kernel takes one rule at a time.
fn write<'a>(path: &Path, rules: impl Iterator<Item = &'a Rule>) -> io::Result<bool> {
    let mut changed = false;
    for rule in rules {
        let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
        file.write_all(written(rule).as_bytes())?;
        changed = true;
    }
    Ok(changed)
}

fn written(rule: &Rule) -> String {
    let number = |number: Option<u32>| number.map_or_else(|| "*".to_owned(), |number| number.to_string());
    let access = match rule.access {
        Access::Make => "m",
        Access::All => "rwm",
    };
    let kind = if rule.block { "b" } else { "c" };
    format!("{kind} {}:{} {access}", number(rule.major), number(rule.minor))
}

/// Whether a line of the list, such as `b 8:* rwm`, allows all of a rule.
fn covers(line: &str, rule: &Rule) -> bool {
    let mut words = line.split([' ', ':']);
    let (Some(kind), Some(major), Some(minor), Some(access)) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return false;
    };
    let number = |word: &str, wanted: Option<u32>| {
        word == "*" || wanted.is_some_and(|wanted| word.parse() == Ok(wanted))
    };
    let wanted = if rule.block { "b" } else { "c" };
    let needed = match rule.access {
        Access::Make => "m",
        Access::All => "rwm",
    };
    (kind == "a" || kind == wanted)
        && number(major, rule.major)
        && number(minor, rule.minor)
        && needed.chars().all(|letter| access.contains(letter))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use rustix::fs::makedev;

    use super::*;
    use crate::cgroup::{Cgroups, Folder};

    #[test]
    fn knows_what_a_line_allows() {
        let disk = Rule::block(makedev(8, 16));
        for (line, expected) in [
            ("a *:* rwm", true),
            ("b *:* rwm", true),
            ("b 8:* rwm", true),
            ("b 8:16 rwm", true),
            ("b 8:16 rw", false),
            ("b 8:17 rwm", false),
            ("c 8:16 rwm", false),
            ("b *:* m", false),
            ("", false),
            ("b 8", false),
        ] {
            assert_eq!(covers(line, &disk), expected, "{line}");
        }
        let any = Rule { major: None, minor: None, ..disk };
        assert!(!covers("b 8:* rwm", &any));
        assert_eq!(written(&any), "b *:* rwm");
    }

    /// A group below our own, where the kernel has them.
    struct Group(PathBuf);

    impl Group {
        fn new() -> Option<Self> {
            let own = Cgroups::of_self().unwrap();
            let Some(Folder::V1(folder)) = own.folder("devices") else { return None };
            let path = folder.join(format!("kubevirt-test-{}", std::process::id()));
            fs::create_dir(&path).ok()?;
            Some(Self(path))
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            let _ = fs::remove_dir(&self.0);
        }
    }

    #[test]
    fn a_real_group_gets_and_loses_a_device() {
        let Some(group) = Group::new() else {
            println!("left out: no control groups of version 1 that we may change");
            return;
        };
        let list = || fs::read_to_string(group.0.join("devices.list")).unwrap();
        fs::write(group.0.join("devices.deny"), "a").unwrap();
        fs::write(group.0.join("devices.allow"), "c 1:3 rwm").unwrap();
        let disk = Rule::block(makedev(253, 77));
        assert!(allow(&group.0, &[disk]).unwrap());
        assert_eq!(list(), "c 1:3 rwm\nb 253:77 rwm\n");
        assert!(!allow(&group.0, &[disk]).unwrap());
        assert!(deny(&group.0, &[disk]).unwrap());
        assert_eq!(list(), "c 1:3 rwm\n");
        assert!(!deny(&group.0, &[disk]).unwrap());
    }
}
