//! Chores of contributors: `cargo xtask --help`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};
use xtask::{cluster, coverage, crds, guest, image, images, up};

#[derive(Parser)]
#[command(name = "xtask", about = "Chores of contributors")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Everything on this machine: a cluster, the system, and a machine at its login prompt.
    Up(up::Arguments),
    /// The end of what `up` started.
    Down(up::Down),
    /// A real Kubernetes on this machine, for tests.
    Cluster(cluster::cli::Arguments),
    /// Pack folders as a container image, an OCI archive.
    Image(image::cli::Arguments),
    /// Build the images of the system, as OCI archives.
    Images(images::Arguments),
    /// Build the small Linux guest of the tests.
    Guest(guest::Arguments),
    /// Write the CustomResourceDefinitions into manifests/crds.
    Crds,
    /// Compare our schemas with the lists of paths and rules in a folder.
    ApiCoverage {
        /// The folder with KIND.tsv, schema-rules.tsv and crds.json.
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().chore {
        Chore::Up(arguments) => up::run(&arguments),
        Chore::Down(arguments) => up::down(&arguments),
        Chore::Cluster(arguments) => cluster::cli::run(arguments),
        Chore::Image(arguments) => image::cli::run(arguments),
        Chore::Images(arguments) => images::run(&arguments),
        Chore::Guest(arguments) => guest::run(&arguments),
        Chore::Crds => crds::write(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests/crds"))),
        Chore::ApiCoverage { folder } => api_coverage(&folder),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn api_coverage(folder: &Path) -> Result<()> {
    let coverage = coverage::compare(folder)?;
    coverage::print(&coverage);
    ensure!(coverage.differences.is_empty(), "the schemas differ in {} places", coverage.differences.len());
    Ok(())
}
