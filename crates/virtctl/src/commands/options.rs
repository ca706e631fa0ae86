//! `options`: the flags that every command takes.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args as _;

use crate::cluster::Flags;
use crate::connect::Connect;
use crate::output;

/// List the flags that every command takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {}

impl Arguments {
    /// Prints them.
    pub async fn run(self, _connect: &Connect) -> Result<ExitCode> {
        let flags = Flags::augment_args(clap::Command::new("options").disable_help_flag(true))
            .mut_args(|flag| flag.hide(false).help_heading(None::<&str>))
            .help_template("The following flags can be passed to any command:\n\n{options}\n")
            .render_help()
            .to_string();
        output::print(&flags)?;
        Ok(ExitCode::SUCCESS)
    }
}
