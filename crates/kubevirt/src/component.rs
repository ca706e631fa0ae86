//! The components that the binary will be, by the name it is called by.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};

/// Names by which the binary is a component.
const NAMES: [&str; 6] =
    ["virt-operator", "virt-api", "virt-controller", "virt-handler", "virt-launcher", "virtctl"];

/// A component of the system, with its own arguments.
#[derive(Subcommand)]
pub enum Component {
    /// Everything at once on this machine, without Kubernetes.
    Up(Rest),
    /// Installs and updates all other components.
    VirtOperator(Rest),
    /// Admission webhooks and subresources.
    VirtApi(Rest),
    /// Makes instances of machines, and pods of instances.
    VirtController(Rest),
    /// Looks after the instances of a node.
    VirtHandler(Rest),
    /// Runs one instance.
    VirtLauncher(Rest),
    /// What users do with running machines.
    Virtctl(Rest),
}

/// Arguments that the component itself understands.
#[derive(Args)]
pub struct Rest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<OsString>,
}

impl Component {
    /// Runs the component.
    pub fn run(&self) -> Result<ExitCode> {
        let name = match self {
            Self::Up(_) => "kubevirt up",
            Self::VirtOperator(_) => "virt-operator",
            Self::VirtApi(_) => "virt-api",
            Self::VirtController(_) => "virt-controller",
            Self::VirtHandler(_) => "virt-handler",
            Self::VirtLauncher(_) => "virt-launcher",
            Self::Virtctl(_) => "virtctl",
        };
        bail!("{name} is not part of this version yet");
    }
}

/// The arguments, with the component's name as the first one where the binary is called by it.
pub fn with_own_name(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let called_as = arguments.first().and_then(|path| Path::new(path).file_name().map(OsString::from));
    if let Some(name) = called_as.filter(|name| NAMES.iter().any(|component| name == *component)) {
        arguments.insert(1, name);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::with_own_name;

    #[test]
    fn the_name_decides_what_the_binary_is() {
        let names = |list: &[&str]| list.iter().map(Into::into).collect::<Vec<std::ffi::OsString>>();
        let cases: [(&[&str], &[&str]); 3] = [
            (&["/usr/bin/virt-api", "--port", "8443"], &["/usr/bin/virt-api", "virt-api", "--port", "8443"]),
            (&["kubevirt", "admit"], &["kubevirt", "admit"]),
            (&[], &[]),
        ];
        for (given, expected) in cases {
            assert_eq!(with_own_name(names(given).into_iter()), names(expected));
        }
    }
}
