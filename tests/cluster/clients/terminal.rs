//! A terminal that a test looks at and types on.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// A terminal with one program; both end with it.
pub struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs a line of shell in a terminal of its own.
    pub fn new(name: &str, line: &str) -> Result<Self> {
        let terminal = Self { socket: format!("kubevirt-test-{}-{name}", std::process::id()) };
        // The last words of a program that ended stay to be read.
        let line = format!("{line}; echo \"ended with $?\"; sleep 600");
        terminal.tmux(&["new-session", "-d", "-s", "one", "-x", "100", "-y", "40", &line])?;
        Ok(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new("tmux").args(["-L", &self.socket]).args(arguments).output();
        let output = output.context("run tmux")?;
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "tmux {arguments:?}: {complaint}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Presses keys, each a name or a text.
    pub fn press(&self, keys: &[&str]) -> Result<()> {
        self.tmux(&[&["send-keys", "-t", "one"], keys].concat()).map(drop)
    }

    /// What is on the screen and above it.
    pub fn screen(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p", "-S", "-200", "-t", "one"])
    }

    /// Waits until the text is on the screen.
    pub async fn wait_for(&self, text: &str, patience: Duration) -> Result<()> {
        let begin = Instant::now();
        loop {
            let screen = self.screen()?;
            if screen.contains(text) {
                return Ok(());
            }
            if begin.elapsed() > patience {
                bail!("{text:?} does not appear on:\n{screen}");
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Presses a key until the text appears: a guest may not listen yet.
    pub async fn press_until(&self, key: &str, text: &str, patience: Duration) -> Result<()> {
        let begin = Instant::now();
        loop {
            self.press(&[key])?;
            match self.wait_for(text, Duration::from_secs(5)).await {
                Err(error) if begin.elapsed() > patience => return Err(error),
                Err(_) => {}
                Ok(()) => return Ok(()),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}
