//! The serial console, on a terminal as people have it.

use std::time::Duration;

use anyhow::Result;
use test_kit::Test;

use super::client::CLIENTS;
use super::terminal::Terminal;
use crate::machines::guest::PATIENCE;

/// For what follows at once, on a machine that is busy.
const SOON: Duration = Duration::from_secs(60);

/// Leaves the console by the key that everybody knows.
async fn leave(terminal: &Terminal) -> Result<()> {
    terminal.press(&["C-]"])?;
    terminal.wait_for("ended with", SOON).await
}

/// Each client gets the prompt, and types; a second viewer takes over and the first one is told.
pub async fn is_typed_on(test: &Test, name: &str) -> Result<()> {
    for client in CLIENTS {
        let line = client.line(test, &["console", name])?;
        let first = Terminal::new(&format!("{}-first", client.word()), &line)?;
        first.press_until("Enter", "login:", PATIENCE).await?;
        let second = Terminal::new(&format!("{}-second", client.word()), &line)?;
        second.press_until("Enter", "login:", PATIENCE).await?;
        // It is told why, and that is a failure.
        first.wait_for("ended with 1", SOON).await?;
        first.wait_for("another viewer", SOON).await?;
        leave(&second).await?;
        // The terminal is as it was: what is typed is shown, and lines begin at the left.
        second.wait_for("ended with 0", SOON).await?;
    }
    Ok(())
}
