//! `create`: manifests from flags, for `kubectl create -f -`.

mod clone;
mod instancetype;
pub mod params;
mod preference;
#[cfg(test)]
mod tests;
pub mod vm;

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use self::params::FlagError;
use crate::connect::Connect;
use crate::names;
use crate::output::{self, Format, note};

/// Write a manifest.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    kind: Kind,
}

/// What the manifest is of.
#[derive(Debug, clap::Subcommand)]
enum Kind {
    Vm(Box<vm::Arguments>),
    Preference(preference::Arguments),
    Instancetype(instancetype::Arguments),
    Clone(clone::Arguments),
}

/// What is printed: the manifest, and words for the standard error.
struct Printed {
    manifest: String,
    warnings: Vec<String>,
}

impl Arguments {
    /// Prints the manifest; no cluster is needed for it.
    #[expect(clippy::unused_async, reason = "all commands are run alike")]
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let printed = self.printed(connect.flags.namespace.as_deref(), &mut || names::suffix(5))?;
        for warning in printed.warnings {
            note!("{warning}");
        }
        output::print(&printed.manifest)?;
        Ok(ExitCode::SUCCESS)
    }

    fn printed(&self, namespace: Option<&str>, suffix: &mut dyn FnMut() -> String) -> Result<Printed> {
        let manifest = match &self.kind {
            Kind::Vm(arguments) => return machine(arguments, namespace, suffix),
            Kind::Preference(arguments) => manifest(&preference::preference(arguments, namespace, suffix)?),
            Kind::Instancetype(arguments) => {
                manifest(&instancetype::instancetype(arguments, namespace, suffix)?)
            }
            Kind::Clone(arguments) => manifest(&clone::clone(arguments, namespace, suffix)?),
        };
        Ok(Printed { manifest: manifest?, warnings: Vec::new() })
    }
}

fn machine(
    arguments: &vm::Arguments,
    namespace: Option<&str>,
    suffix: &mut dyn FnMut() -> String,
) -> Result<Printed> {
    let password = arguments.password_file.as_ref().map(|path| {
        let read = std::fs::read_to_string(path);
        read.map_err(|error| FlagError::new("password-file", format!("{}: {error}", path.display())))
    });
    let password = password.transpose()?;
    let inputs = vm::Inputs { namespace, password: password.as_deref(), suffix };
    let vm::Made { machine, warnings } = vm::virtual_machine(arguments, inputs)?;
    Ok(Printed { manifest: manifest(&machine)?, warnings })
}

/// The object as YAML with its fields in the order of the alphabet.
fn manifest(object: &impl Serialize) -> Result<String> {
    Format::Yaml.render(&serde_json::to_value(object)?)
}

/// Whether a thing is for the whole cluster, or for a namespace that may be left open.
enum Scope {
    Cluster,
    Namespace(Option<String>),
}

impl Scope {
    fn of(namespaced: bool, namespace: Option<&str>) -> Self {
        match (namespaced, namespace) {
            (false, None) => Self::Cluster,
            (_, namespace) => Self::Namespace(namespace.map(str::to_owned)),
        }
    }

    fn name(&self, given: Option<&str>, kind: &str, suffix: &mut dyn FnMut() -> String) -> String {
        match (given.filter(|name| !name.is_empty()), self) {
            (Some(name), _) => name.to_owned(),
            (None, Self::Cluster) => format!("cluster{kind}-{}", suffix()),
            (None, Self::Namespace(_)) => format!("{kind}-{}", suffix()),
        }
    }
}
