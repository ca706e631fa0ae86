//! `guestosinfo`: the operating system of a guest, as its agent tells.

use std::process::ExitCode;

use anyhow::Result;

use super::agent::Guest;
use crate::connect::Connect;

/// Return guest agent info about the operating system.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "  # Return guest agent info about the operating system.\n  {program} guestosinfo myvmi"
)]
pub struct Arguments {
    #[command(flatten)]
    guest: Guest,
}

impl Arguments {
    /// Prints it as JSON.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        self.guest.tell(connect, "guestosinfo", "getting guestosinfo").await
    }
}
