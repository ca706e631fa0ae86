//! The components that the binary is, by the name it is called by.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use kubevirt_virt_launcher::{Arguments, programs, run};

/// A program that the binary is when it is called by its name, or with its name as the first argument.
pub struct Component {
    /// The name.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Runs it; its name is the first argument.
    pub run: fn(&[OsString]) -> Result<ExitCode>,
}

/// All components. The launcher is looked up here and parses its own arguments only: there may be hundreds of them,
/// and none needs to know what the others understand.
pub const COMPONENTS: [Component; 15] = [
    Component { name: "up", about: "Everything at once on this machine, without Kubernetes", run: not_yet },
    Component { name: "virt-operator", about: "Installs and updates all other components", run: not_yet },
    Component { name: "virt-api", about: "Admission webhooks and subresources", run: kubevirt_virt_api::run },
    Component {
        name: "virt-controller",
        about: "Makes instances of machines, and pods of instances",
        run: kubevirt_virt_controller::run,
    },
    Component {
        name: "virt-handler",
        about: "Looks after the instances of a node",
        run: kubevirt_virt_handler::run,
    },
    Component {
        name: "node-labeller",
        about: "Writes down what QEMU can do on a node",
        run: kubevirt_virt_handler::labels::program::run,
    },
    Component { name: "virtctl", about: "What users do with their machines", run: kubevirt_virtctl::run },
    Component {
        name: "kubectl-virt",
        about: "What users do with their machines, as a plugin of kubectl",
        run: kubevirt_virtctl::run,
    },
    Component {
        name: "kubectl-virtctl",
        about: "What users do with their machines, as a plugin of kubectl",
        run: kubevirt_virtctl::run,
    },
    Component {
        name: "oc-virt",
        about: "What users do with their machines, as a plugin of oc",
        run: kubevirt_virtctl::run,
    },
    Component {
        name: "virt-launcher",
        about: "Runs one instance",
        run: |arguments| Ok(run(Arguments::parse_from(arguments))),
    },
    Component {
        name: "virt-launcher-monitor",
        about: "Runs one instance, as pods of KubeVirt call it",
        run: |arguments| Ok(run(Arguments::parse_from(arguments))),
    },
    Component {
        name: "virt-probe",
        about: "Asks the guest agent whether the guest is well",
        run: |arguments| Ok(programs::probe::run(&programs::probe::Arguments::parse_from(arguments))),
    },
    Component {
        name: "virt-freezer",
        about: "Holds the guest's file systems still for a backup",
        run: |arguments| Ok(programs::freezer::run(&programs::freezer::Arguments::parse_from(arguments))),
    },
    Component {
        name: "virt-tail",
        about: "Copies a growing file to standard output",
        run: |arguments| Ok(programs::tail::run(&programs::tail::Arguments::parse_from(arguments))),
    },
];

fn not_yet(arguments: &[OsString]) -> Result<ExitCode> {
    let name = arguments.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    bail!("{name} is not part of this version yet");
}

/// The component that the arguments ask for, and its arguments with its own name as the first.
pub fn called(arguments: &[OsString]) -> Option<(&'static Component, Vec<OsString>)> {
    let own_name = Path::new(arguments.first()?).file_name()?;
    // `up` is a word of the one binary, not a program of its own.
    let by_name = find(own_name).filter(|component| component.name != "up");
    let (component, rest) = match by_name {
        Some(component) => (component, &arguments[1..]),
        None => (find(arguments.get(1)?)?, &arguments[2..]),
    };
    Some((component, std::iter::once(component.name.into()).chain(rest.iter().cloned()).collect()))
}

fn find(name: &OsStr) -> Option<&'static Component> {
    COMPONENTS.iter().find(|component| name == component.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_decides_what_the_binary_is() {
        let cases: [(&str, Option<&str>); 10] = [
            ("/usr/bin/virt-api --port 8443", Some("virt-api --port 8443")),
            ("/usr/bin/virt-launcher-monitor --name a", Some("virt-launcher-monitor --name a")),
            ("virt-tail", Some("virt-tail")),
            ("/usr/local/bin/oc-virt start a", Some("oc-virt start a")),
            ("kubevirt virt-probe --command ls -- -l", Some("virt-probe --command ls -- -l")),
            ("/opt/any-name virt-probe", Some("virt-probe")),
            ("kubevirt up", Some("up")),
            ("up admit", None),
            ("kubevirt admit virt-api", None),
            ("", None),
        ];
        for (given, expected) in cases {
            let given: Vec<OsString> = given.split_whitespace().map(Into::into).collect();
            let expected: Option<Vec<OsString>> =
                expected.map(|line| line.split_whitespace().map(Into::into).collect());
            assert_eq!(called(&given).map(|(_, arguments)| arguments), expected, "{given:?}");
        }
    }
}
