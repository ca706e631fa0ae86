//! `userlist`: who is logged in to a guest, as its agent tells.

use std::process::ExitCode;

use anyhow::Result;

use super::agent::Guest;
use crate::connect::Connect;

/// Return the full list of logged in users on the guest machine.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "  # Return the full list of logged in users on the guest machine.\n  {program} userlist myvmi"
)]
pub struct Arguments {
    #[command(flatten)]
    guest: Guest,
}

impl Arguments {
    /// Prints it as JSON.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        self.guest.tell(connect, "userlist", "listing users").await
    }
}
