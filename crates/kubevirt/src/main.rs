//! The one binary: the name it is called by, or its first argument, decides what it is.

mod admit;
mod component;
mod documents;
mod install_manifests;
mod render;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use component::COMPONENTS;

/// Virtual machines as Kubernetes objects.
#[derive(Parser)]
#[command(name = "kubevirt", version)]
enum Command {
    /// Check manifests, or answer an AdmissionReview, as the cluster would.
    Admit(admit::Arguments),
    /// Print every object that a cluster needs to run machines, for kubectl to apply.
    InstallManifests(install_manifests::Arguments),
    /// Show what machines would become: their launcher pods, their domains, their QEMU command lines.
    Render(render::Arguments),
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let result = match component::called(&arguments) {
        Some((component, arguments)) => (component.run)(&arguments),
        None => match parse(arguments) {
            Command::Admit(arguments) => admit::run(&arguments),
            Command::InstallManifests(arguments) => install_manifests::run(&arguments),
            Command::Render(arguments) => render::run(&arguments),
        },
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

/// Reads what is not for a component; help tells of those as well.
fn parse(arguments: Vec<OsString>) -> Command {
    let components =
        COMPONENTS.iter().map(|component| clap::Command::new(component.name).about(component.about));
    let matches = Command::command().subcommands(components).get_matches_from(arguments);
    Command::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}
