//! CEL expressions as far as they can be judged without a guest: their syntax, their names and what they yield.
//!
//! Fields of `vmi` are not looked up, except for the few whose type settles what a whole expression yields.
//! What cannot be told is let through: an expression that fails later is handled by its failure strategy.

mod kinds;
mod parser;
mod tokens;

use kinds::Kind;
pub use kinds::Names;

/// The longest expression that is looked at, in bytes.
const MAX_LENGTH: usize = 100_000;

/// Why this is not a condition, which yields true or false, if it is not.
pub fn condition_problem(text: &str, names: Names) -> Option<String> {
    match kind(text, names) {
        Ok(Kind::Bool | Kind::Unknown) => None,
        Ok(other) => Some(format!("it yields {other}, not true or false")),
        Err(problem) => Some(problem),
    }
}

/// Why this is not a change, which yields a `Domain`, if it is not.
pub fn mutation_problem(text: &str) -> Option<String> {
    match kind(text, Names::OfDomainHooks) {
        Ok(Kind::Domain | Kind::Unknown) => None,
        Ok(other) => Some(format!("it yields {other}, not a Domain")),
        Err(problem) => Some(problem),
    }
}

fn kind(text: &str, names: Names) -> Result<Kind, String> {
    if text.len() > MAX_LENGTH {
        return Err(format!("it is longer than {MAX_LENGTH} bytes"));
    }
    parser::kind(&tokens::read(text)?, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions() {
        let good = [
            "true",
            "vmi.Name == \"a\" && !(vmi.Namespace != 'b')",
            "vmi.Spec.Domain.CPU.Cores >= 4u || size(vmi.Spec.Volumes) > 2",
            "has(vmi.Spec.Domain.Memory) ? vmi.Spec.X : false",
            "vmi.Spec.Volumes.exists(v, v.Name.startsWith('data') && v.Name != vmi.Name)",
            "vmi.Spec.Volumes.all(v, v.Name in ['a', \"b\", r'c\\d', '''e'''])",
            "'a' in vmi.Labels && vmi.Labels['a'] == 'b'",
            "vmi.Annotations[\"x\"] == 'y' // why not",
            "domainSpec.Devices.Disks.filter(d, d.Device == 'disk').size() == 1",
            "1 + 2 * -3 % 4 < 0x1F && 1.5e3 > .5",
            "[1, 2,].map(x, x * 2)[0] == 2 && {'a': 1}['a'] == 1",
            "'a' + 'b' == 'ab' && b'x' == b\"x\"",
            "type(vmi.Name) == string && int('1') == 1",
            "vmi.Spec.Domain.Devices.Interfaces.exists_one(i, i.Masquerade != null)",
            "!!true",
            "vmi.Spec.Paused",
        ];
        let bad = [
            "",
            "invalid!!! condition",
            "vmi.Name",
            "vmi.Labels",
            "1",
            "'a'",
            "[true]",
            "{'a': true}",
            "null",
            "Domain{}",
            "1 + 2",
            "vmi.Name == ",
            "vmi..Name == 'a'",
            "(true",
            "true)",
            "[1, 2",
            "'open",
            "'''open'",
            "a == 1",
            "v.all(x, true)",
            "vmi.Spec.Volumes.all(1, true)",
            "vmi.Spec.Volumes.all(v)",
            "vmi.Name.launch()",
            "launch(vmi)",
            "true && 'a'",
            "!'a'",
            "-true == 1",
            "'a' == 1",
            "'a' < true",
            "'a' + 1 == 'a1'",
            "1 in 'abc'",
            "true ? 1 : 2",
            "1 ? true : false",
            "true ? true : 'a'",
            "if",
            "vmi.Name = 'a'",
            "vmi.Name == 'a' & true",
            "#",
            "vmi.Name.lowerAscii() == 'a'",
            "'\\q' == 'a'",
        ];
        for text in good {
            assert_eq!(condition_problem(text, Names::OfDomainHooks), None, "{text}");
        }
        for text in bad {
            assert!(condition_problem(text, Names::OfDomainHooks).is_some(), "{text}");
        }
    }

    #[test]
    fn node_hooks_see_other_names() {
        for text in [
            "vmi.metadata.name.lowerAscii() == 'a'",
            "math.greatest(1, 2) == 2",
            "vmi.status.phase == 'Running'",
        ] {
            assert_eq!(condition_problem(text, Names::OfNodeHooks), None, "{text}");
        }
        for text in ["domainSpec.Name == 'a'", "vmi.metadata.name", "vmi.metadata.labels"] {
            assert!(condition_problem(text, Names::OfNodeHooks).is_some(), "{text}");
        }
    }

    #[test]
    fn mutations() {
        let good = [
            "Domain{}",
            "libvirtxml.Domain{Title: 'a'}",
            "Domain{Title: 'a', Memory: DomainMemory{Value: 1024u, Unit: 'MiB'},}",
            "domainSpec",
            "vmi.Name == 'a' ? Domain{Title: 'a'} : domainSpec",
            "Domain{SysInfo: [DomainSysInfo{}], IOThreads: 2u, Description: domainSpec.Title}",
            "Domain{Devices: DomainDeviceList{Disks: domainSpec.Devices.Disks.map(d, DomainDisk{Device: d.Device})}}",
        ];
        let bad = [
            "Domainn{Title: 'a'}",
            "DomainMemory{}",
            "Domain{Memory: 'much'}",
            "Domain{Title: 1}",
            "Domain{IOThreads: 'two'}",
            "Domain{SysInfo: 'x'}",
            "Domain{Titel: 'a'}",
            "Domain{Title 'a'}",
            "Domain{Title: 'a'",
            "Domain{'Title': 'a'}",
            "true",
            "vmi",
            "not!!! valid",
        ];
        for text in good {
            assert_eq!(mutation_problem(text), None, "{text}");
        }
        for text in bad {
            assert!(mutation_problem(text).is_some(), "{text}");
        }
    }

    #[test]
    fn what_is_deep_or_long_is_refused_and_not_followed() {
        for text in [
            "(".repeat(50_000),
            "[".repeat(50_000),
            "!".repeat(50_000),
            "a.".repeat(50_000),
            "x".repeat(200_000),
        ] {
            assert!(condition_problem(&text, Names::OfDomainHooks).is_some());
        }
        let deep = format!("{}true{}", "(".repeat(40), ")".repeat(40));
        assert_eq!(condition_problem(&deep, Names::OfDomainHooks), None);
        assert_eq!(
            condition_problem(&format!("true{}", " && true".repeat(10_000)), Names::OfDomainHooks),
            None
        );
    }
}
