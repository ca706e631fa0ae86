//! The machine type, which the cluster allows by globs such as `q35*`.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use crate::{Context, Path, Problems};

/// Everything that is wrong.
pub(super) fn check(
    cx: &Context<'_>,
    path: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let machine = spec.domain.machine.as_ref().and_then(|machine| machine.type_.as_deref());
    let Some(machine) = machine.filter(|machine| !machine.is_empty()) else { return };
    let allowed = cx.config.emulated_machines(spec.architecture.as_deref().unwrap_or_default());
    if !allowed.iter().any(|glob| matches(glob, machine)) {
        let message = format!("machine type {machine:?} is not allowed; allowed are {}", allowed.join(", "));
        problems.invalid(&path.at("domain.machine.type"), message);
    }
}

/// One step of a glob.
enum Step {
    /// `*`: any run of characters but '/'.
    Run,
    /// One character: itself, or any (but '/') of a set.
    One { ranges: Vec<(char, char)>, except: bool },
}

impl Step {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Run => c != '/',
            Self::One { ranges, except } => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&c)) != *except
            }
        }
    }
}

/// The steps of a glob, unless it is malformed.
fn steps(glob: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = glob.chars().peekable();
    while let Some(c) = rest.next() {
        steps.push(match c {
            '*' => Step::Run,
            '?' => Step::One { ranges: vec![('/', '/')], except: true },
            '\\' => {
                let c = rest.next()?;
                Step::One { ranges: vec![(c, c)], except: false }
            }
            '[' => {
                let except = rest.next_if_eq(&'^').is_some();
                let mut ranges = Vec::new();
                while ranges.is_empty() || rest.peek() != Some(&']') {
                    let first = set_member(&mut rest)?;
                    let last = match rest.next_if_eq(&'-') {
                        Some(_) => set_member(&mut rest)?,
                        None => first,
                    };
                    ranges.push((first, last));
                }
                rest.next();
                Step::One { ranges, except }
            }
            c => Step::One { ranges: vec![(c, c)], except: false },
        });
    }
    Some(steps)
}

fn set_member(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<char> {
    match rest.next()? {
        '\\' => rest.next(),
        '-' | ']' => None,
        c => Some(c),
    }
}

/// Whether a shell glob matches the whole text; a malformed one matches nothing.
fn matches(glob: &str, text: &str) -> bool {
    let Some(steps) = steps(glob) else { return false };
    // Which prefixes of the glob match the text read so far; there is one more of them than there are steps.
    let mut reached = vec![false; steps.len() + 1];
    reached[0] = true;
    skip_runs(&steps, &mut reached);
    for c in text.chars() {
        let mut next = vec![false; steps.len() + 1];
        for (at, step) in steps.iter().enumerate() {
            if reached[at] && step.takes(c) {
                let to = if matches!(step, Step::Run) { at } else { at + 1 };
                next[to] = true;
            }
        }
        skip_runs(&steps, &mut next);
        reached = next;
    }
    reached.last() == Some(&true)
}

/// A run may be empty, so that whoever is before it is behind it too.
fn skip_runs(steps: &[Step], reached: &mut [bool]) {
    for (at, step) in steps.iter().enumerate() {
        if matches!(step, Step::Run) && reached[at] {
            reached[at + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;
    use serde_json::json;

    use super::super::testing::run;
    use super::matches;
    use crate::testing::World;

    #[test]
    fn globs_match_as_in_a_shell() {
        for (glob, text, expected) in [
            ("q35*", "q35", true),
            ("q35*", "q35-9.0", true),
            ("q35*", "pc-q35", false),
            ("*q35*", "pc-q35-rhel9", true),
            ("*", "a/b", false),
            ("pc-?35", "pc-q35", true),
            ("pc-?35", "pc-35", false),
            ("pc-[qp]35", "pc-p35", true),
            ("pc-[a-f]35", "pc-q35", false),
            ("pc-[^a-f]35", "pc-q35", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c--b", false),
            ("[", "[", false),
            ("[]a]", "]", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(glob, text), expected, "{glob} {text}");
        }
    }

    proptest! {
        #[test]
        fn any_glob_and_any_text_are_answered(glob in ".{0,12}", text in ".{0,12}") {
            matches(&glob, &text);
            assert!(matches("*", &text.replace('/', "")));
        }

        #[test]
        fn a_text_without_signs_matches_itself(text in "[a-z0-9.-]{0,12}") {
            assert!(matches(&text, &text));
        }
    }

    #[test]
    fn the_machine_type_is_one_that_the_cluster_allows() {
        let machine = |architecture: &str, machine: &str| json!({ "architecture": architecture, "domain": { "machine": { "type": machine } } });
        let at = "spec.domain.machine.type";
        run(
            &World::default(),
            &[
                ("q35", machine("amd64", "q35"), &[]),
                ("versioned", machine("amd64", "pc-q35-rhel9.6.0"), &[]),
                ("none", machine("amd64", ""), &[]),
                ("other", machine("amd64", "pc-i440fx"), &[at]),
                ("arm64", machine("arm64", "virt"), &[]),
                ("amd64 machine on arm64", machine("arm64", "q35"), &[at]),
                ("s390x", machine("s390x", "s390-ccw-virtio-rhel9"), &[]),
                ("no architecture", machine("", "q35"), &[]),
            ],
        );
        let custom = World::default().with_configuration(json!({ "emulatedMachines": ["test*"] }));
        run(&custom, &[("custom", machine("amd64", "test-1"), &[]), ("q35", machine("amd64", "q35"), &[at])]);
    }
}
