//! The one binary: the name it is called by, or its first argument, decides what it is.

mod admit;
mod component;

use std::process::ExitCode;

use clap::Parser;

/// Virtual machines as Kubernetes objects.
#[derive(Parser)]
#[command(name = "kubevirt", version)]
enum Command {
    /// Check manifests, or answer an AdmissionReview, as the cluster would.
    Admit(admit::Arguments),
    #[command(flatten)]
    Component(component::Component),
}

fn main() -> ExitCode {
    let command = Command::parse_from(component::with_own_name(std::env::args_os()));
    let result = match command {
        Command::Admit(arguments) => admit::run(&arguments),
        Command::Component(component) => component.run(),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
