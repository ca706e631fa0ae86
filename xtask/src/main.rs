//! Chores of contributors: `cargo xtask --help`.

mod coverage;
mod crds;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Chores of contributors.
#[derive(Parser)]
enum Chore {
    /// Write the CustomResourceDefinitions into manifests/crds.
    Crds,
    /// Compare our schemas with the lists of paths and rules in a folder.
    ApiCoverage {
        /// The folder with KIND.tsv, schema-rules.tsv and crds.json.
        folder: PathBuf,
    },
}

fn main() -> Result<ExitCode> {
    match Chore::parse() {
        Chore::Crds => crds::write(&repository().join("manifests/crds"))?,
        Chore::ApiCoverage { folder } => {
            let coverage = coverage::compare(&folder)?;
            coverage::print(&coverage);
            if !coverage.differences.is_empty() {
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The root of the repository.
fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
