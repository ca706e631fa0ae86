//! Each case of `testdata/pods` becomes the pod, or the refusal, that lies beside it.
//!
//! `basic` is written out; of the others only what differs from it: `+` lines are theirs, `-` lines are basic's.
//! `UPDATE_GOLDEN=1 cargo test -p kubevirt-virt-controller pod::tests::golden` writes them anew.

use std::collections::BTreeSet;
use std::{env, fs};

use super::cases::{self, Case};
use super::lines;

#[test]
fn every_pod_is_as_it_was() {
    let update = env::var_os("UPDATE_GOLDEN").is_some();
    let all = cases::all();
    let basic = all.iter().find(|case| case.name == "basic").unwrap();
    let basic = lines::of(&basic.pod().unwrap());
    let mut wrong = Vec::new();
    for case in &all {
        let text = outcome(case, &basic);
        let path = cases::folder().join(&case.name).with_extension("pod");
        if update {
            fs::write(&path, &text).unwrap();
        } else if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            wrong.push(format!("{}:\n{text}", case.name));
        }
    }
    let wrong = wrong.join("\n");
    assert!(wrong.is_empty(), "differ from what is stored (UPDATE_GOLDEN=1 accepts them):\n{wrong}");
}

fn outcome(case: &Case, basic: &BTreeSet<String>) -> String {
    let own = match case.pod() {
        Ok(pod) => lines::of(&pod),
        Err(error) => return format!("refused: {}\n", error.to_string().replace("; ", "\nrefused: ")),
    };
    let mut text = String::new();
    let mut tell = |mark: &str, line: &String| text.extend([mark, line, "\n"]);
    if case.name == "basic" {
        own.iter().for_each(|line| tell("", line));
        return text;
    }
    basic.difference(&own).for_each(|line| tell("- ", line));
    own.difference(basic).for_each(|line| tell("+ ", line));
    text
}
