//! Each VMI in `golden/` becomes the arguments, or the refusals, that lie beside it.
//!
//! `UPDATE_GOLDEN=1 cargo test -p kubevirt-domain --test domain golden` writes them anew.

use std::fmt::Write;
use std::{env, fs};

use crate::support::{Case, cases, folder};
use kubevirt_domain::domain::network::NetBackend;
use kubevirt_domain::{Domain, Layout, convert, passt, qemu};

#[test]
fn every_case_is_as_it_was() {
    let update = env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let (end, text) = outcome(&case);
        let other = if end == "args" { "refused" } else { "args" };
        let path = folder().join(&case.name).with_extension(end);
        let stale = folder().join(&case.name).with_extension(other);
        if update {
            fs::write(&path, &text).unwrap();
            drop(fs::remove_file(stale));
        } else if fs::read_to_string(&path).ok().as_ref() != Some(&text) || stale.exists() {
            wrong.push(format!("{}:\n{text}", case.name));
        }
    }
    assert!(
        wrong.is_empty(),
        "differ from what is stored (UPDATE_GOLDEN=1 accepts them):\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_domain_survives_being_stored() {
    for case in cases() {
        if let Ok(domain) = convert(&case.vmi, &case.host, &case.qemu, &Layout::default()) {
            let stored = serde_json::to_string(&domain).unwrap();
            assert_eq!(serde_json::from_str::<Domain>(&stored).unwrap(), domain, "{}", case.name);
        }
    }
}

/// The end of the file's name and what is in it.
fn outcome(case: &Case) -> (&'static str, String) {
    let domain = match convert(&case.vmi, &case.host, &case.qemu, &Layout::default()) {
        Ok(domain) => domain,
        Err(error) => {
            let lines: Vec<_> = error.problems.iter().map(ToString::to_string).collect();
            return ("refused", lines.join("\n") + "\n");
        }
    };
    let mut text = String::new();
    for argument in qemu::arguments(&domain) {
        let separator = if argument.starts_with('-') { "\n" } else { " " };
        write!(text, "{separator}{argument}").unwrap();
    }
    for command in qemu::start_commands(&domain) {
        write!(text, "\n# then {} {}", command.execute, command.arguments).unwrap();
    }
    for (name, value) in &domain.environment {
        write!(text, "\n# with {name}={value}").unwrap();
    }
    for file in &domain.files {
        write!(text, "\n# with {} holding {}", file.path, file.content).unwrap();
    }
    for interface in &domain.interfaces {
        if let NetBackend::VhostUser { socket, ports } = &interface.backend {
            write!(text, "\n# beside passt {}", passt::arguments(socket, ports).join(" ")).unwrap();
        }
    }
    if let Some(pinning) = &domain.pinning {
        write!(text, "\n# pinned {}", serde_json::to_string(pinning).unwrap()).unwrap();
    }
    ("args", text.trim_start().to_owned() + "\n")
}
