//! The shell of the pod in this terminal.

use anyhow::{Context as _, Result};
use futures_util::SinkExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{AttachParams, TerminalSize};
use tokio::signal::unix::{SignalKind, signal};

use super::pod::CONTAINER;
use crate::output::note;
use crate::terminal::{Raw, converse};

/// Talks to the shell until one side has enough.
pub async fn attach(pods: &Api<Pod>, name: &str) -> Result<()> {
    let params =
        AttachParams::default().container(CONTAINER).stdin(true).stdout(true).stderr(false).tty(true);
    let mut process = pods.attach(name, &params).await.context("the shell cannot be reached")?;
    let (Some(output), Some(input)) = (process.stdout(), process.stdin()) else {
        anyhow::bail!("the shell has no input or no output");
    };
    note!("If you don't see a command prompt, try pressing enter.");
    let raw = Raw::enter().context("the terminal cannot be made raw")?;
    let sizes = process.terminal_size();
    let told = async {
        if let Some(sizes) = sizes {
            tell_size(sizes).await;
        }
        std::future::pending::<()>().await;
    };
    let talk = converse(tokio::io::stdin(), tokio::io::stdout(), tokio::io::join(output, input));
    let ended = tokio::select! {
        (ended, _) = talk => ended,
        () = told => return Ok(()),
    };
    drop(raw);
    note!("");
    process.abort();
    ended.context("the connection to the shell failed")?;
    Ok(())
}

/// Tells the shell how large the terminal is, now and after every change.
async fn tell_size(mut sizes: impl futures_util::Sink<TerminalSize> + Unpin) {
    let Ok(mut changes) = signal(SignalKind::window_change()) else { return };
    loop {
        let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout()) else { return };
        let size = TerminalSize { width: size.ws_col, height: size.ws_row };
        if sizes.send(size).await.is_err() || changes.recv().await.is_none() {
            return;
        }
    }
}
