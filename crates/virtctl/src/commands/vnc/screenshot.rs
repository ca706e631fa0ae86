//! `vnc screenshot`: what a machine shows right now.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use http::Method;

use crate::connect::Connect;
use crate::output;
use crate::subresource::{Kind, path};

/// Create a VNC screenshot of a virtual machine instance.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Take a screenshot of 'testvmi' as a PNG file:
  {program} vnc screenshot testvmi -f screenshot.png

  # Look at it right away:
  {program} vnc screenshot testvmi -f - | display")]
pub struct Arguments {
    /// The name of the instance
    #[arg(value_name = "VMI")]
    name: String,
    /// Where to write the PNG; - is standard output
    #[arg(long, short = 'f')]
    file: PathBuf,
    /// Move the mouse first, to wake a screen that sleeps
    #[arg(long, short = 'm')]
    move_cursor: bool,
}

impl Arguments {
    /// Fetches the picture and writes it.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let session = connect.session().await?;
        let path = path(Kind::Vmi, &session.namespace, &self.name, "vnc/screenshot");
        let picture = session
            .call(Method::GET, &format!("{path}?moveCursor={}", self.move_cursor), None)
            .await
            .with_context(|| format!("Can't access VMI {}", self.name))?;
        if self.file.as_os_str() == "-" {
            output::bytes(&picture)?;
        } else {
            tokio::fs::write(&self.file, picture)
                .await
                .with_context(|| format!("{} cannot be written", self.file.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
