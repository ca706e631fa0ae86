//! The display, as a picture and as a client of remote displays sees it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use test_kit::Test;

use super::client::{CLIENTS, Client};

/// A process that ends with its test.
pub struct Running(Child);

impl Running {
    /// Starts it, whatever it says.
    pub fn start(mut command: Command) -> Result<Self> {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self::of(command)
    }

    /// Starts it as it is.
    pub fn of(mut command: Command) -> Result<Self> {
        Ok(Self(command.stdin(Stdio::null()).spawn().context("start")?))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port of this machine that nobody uses.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Tries until it works.
pub async fn try_for<T>(patience: Duration, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let begin = Instant::now();
    loop {
        match attempt() {
            Err(error) if begin.elapsed() > patience => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
            done => return done,
        }
    }
}

/// Each client takes a picture of it; a viewer sees it through each.
pub async fn is_seen(test: &Test, name: &str) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("kubevirt-screen-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    for client in CLIENTS {
        let picture = folder.join(format!("{}.png", client.word()));
        let file = picture.to_str().context("a path that is no text")?;
        client.run(test, &["vnc", "screenshot", name, "--file", file])?;
        ensure!(std::fs::read(&picture)?.starts_with(b"\x89PNG"), "{client:?}: not a picture");
        is_seen_by_viewer(test, name, client, &folder.join(format!("{}.jpg", client.word()))).await?;
    }
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

async fn is_seen_by_viewer(test: &Test, name: &str, client: Client, file: &std::path::Path) -> Result<()> {
    let port = free_port()?;
    let arguments = ["vnc", name, "--proxy-only", &format!("--port={port}")];
    let _proxy = Running::start(client.command(test, &arguments)?)?;
    try_for(Duration::from_secs(60), || {
        let output = Command::new("vncsnapshot").arg(format!("127.0.0.1::{port}")).arg(file).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{client:?}: vncsnapshot: {said}");
        ensure!(std::fs::read(file)?.starts_with(b"\xff\xd8"), "{client:?}: not a picture");
        Ok(())
    })
    .await
}

/// Who does not want to disturb is told that somebody watches, who goes on watching.
pub async fn is_left_to_its_viewer(test: &Test, name: &str) -> Result<()> {
    let port = free_port()?;
    let watch = ["vnc", name, "--proxy-only", &format!("--port={port}")];
    let _proxy = Running::start(Client::Ours.command(test, &watch)?)?;
    let mut viewer =
        try_for(Duration::from_secs(60), || Ok(TcpStream::connect(("127.0.0.1", port))?)).await?;
    viewer.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut greeting = [0; 12];
    viewer.read_exact(&mut greeting).context("no greeting")?;
    ensure!(greeting.starts_with(b"RFB "), "{greeting:?} is no display");
    let said = Client::Ours.fail(test, &["vnc", name, "--proxy-only", "--preserve-session"])?;
    ensure!(said.contains("Active VNC connection"), "a second viewer: {said}");
    // Both sides say which version they speak; then comes a list of ways to get in.
    viewer.write_all(&greeting)?;
    let mut ways = [0; 2];
    viewer.read_exact(&mut ways).context("the first viewer was disturbed")
}
