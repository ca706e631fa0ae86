//! `vnc`: the display of a machine, in a viewer or as a local port.

mod screenshot;
mod viewer;

use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::net::{TcpListener, TcpStream};

use super::console::warn_if_paused;
use crate::connect::Connect;
use crate::failure::Failure;
use crate::farewell;
use crate::local;
use crate::output::say;
use crate::subresource::Kind;

/// How long a viewer that we have started may take to connect.
const PATIENCE: Duration = Duration::from_secs(60);

/// Open a VNC connection to a virtual machine instance.
///
/// Starts a viewer (remote-viewer or vncviewer), or with --proxy-only prints the port where one can connect.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_negates_reqs = true,
    after_help = "  # Show the display of 'testvmi':
  {program} vnc testvmi

  # Let a viewer on another machine connect:
  {program} vnc testvmi --proxy-only --address=0.0.0.0 --port=5900"
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The name of the instance
    #[arg(value_name = "VMI", required = true)]
    name: Option<String>,
    /// Where to listen with --proxy-only: 0.0.0.0 is on all interfaces, open to whoever can reach this machine
    #[arg(long, default_value = "127.0.0.1")]
    address: String,
    /// The local port; 0 is any that is free
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Start no viewer: print the port as JSON and wait for one
    #[arg(long)]
    proxy_only: bool,
    /// Do not take the display over from a viewer that has it
    #[arg(long)]
    preserve_session: bool,
    /// The viewer's executable
    #[arg(long, value_name = "FILE")]
    vnc_path: Option<PathBuf>,
    /// The kind of viewer: tiger, chicken, real or remote-viewer
    #[arg(long, value_name = "TYPE")]
    vnc_type: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Screenshot(screenshot::Arguments),
}

impl Arguments {
    /// Opens the display first, so that what cannot be seen does not open a window.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        if let Some(Command::Screenshot(arguments)) = self.command {
            return arguments.run(connect).await;
        }
        let name = self.name.clone().unwrap_or_default();
        let session = connect.session().await?;
        let preserve = if self.preserve_session { "true" } else { "false" };
        let query = [("preserveSession", preserve)];
        let mut stream = session
            .stream(Kind::Vmi, &session.namespace, &name, "vnc", &query)
            .await
            .with_context(|| format!("can't access VMI {name}"))?;
        let listener = self.listen().await?;
        let port = listener.local_addr()?.port();
        let mut viewer = None;
        if self.proxy_only {
            say!("{}", serde_json::json!({ "port": port }));
        } else {
            viewer = Some(self.start(port, connect.flags.verbosity)?);
        }
        let mut connection = tokio::select! {
            accepted = self.accept(&listener) => accepted?,
            _ = tokio::signal::ctrl_c() => return Ok(ExitCode::SUCCESS),
            ended = ended(&mut viewer) => {
                return Err(Failure::new(
                    format!("the viewer ended before it connected: {ended}"),
                    "Choose another with --vnc-type or --vnc-path, or use --proxy-only.",
                ).into());
            }
        };
        // Nobody else is to connect in its place.
        drop(listener);
        warn_if_paused(session, &name).await;
        let carried = tokio::select! {
            carried = kubevirt_streams::join(&mut connection, &mut stream) => Some(carried),
            // It also ends when the other side has: the stream knows.
            _ = ended(&mut viewer) => None,
            _ = tokio::signal::ctrl_c() => None,
        };
        farewell::tell_carried(session, &name, carried, stream.farewell()).await
    }

    async fn listen(&self) -> Result<TcpListener> {
        let host = if self.proxy_only { self.address.as_str() } else { "127.0.0.1" };
        let address = local::address(host, self.port).await?;
        TcpListener::bind(address).await.map_err(|error| {
            let what = format!("can't listen on {address}: {error}");
            Failure::new(what, "Choose another with --address and --port; port 0 is any that is free.").into()
        })
    }

    /// A viewer that we have started connects soon or never; anybody else may take their time.
    async fn accept(&self, listener: &TcpListener) -> Result<TcpStream> {
        let accepted = if self.proxy_only {
            listener.accept().await
        } else {
            tokio::time::timeout(PATIENCE, listener.accept()).await.context("the viewer did not connect")?
        };
        let (connection, _) = accepted.context("no viewer could connect")?;
        // Keys and clicks are small, and must not wait for more of them.
        connection.set_nodelay(true)?;
        Ok(connection)
    }

    fn start(&self, port: u16, verbosity: u32) -> Result<tokio::process::Child> {
        let wish = viewer::Wish {
            os: std::env::consts::OS,
            kind: self.vnc_type.as_deref(),
            path: self.vnc_path.as_deref(),
            port,
            verbose: verbosity >= 4,
        };
        let (program, arguments) = viewer::choose(&wish, &viewer::on_this_machine)?;
        tokio::process::Command::new(&program)
            .args(arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))
    }
}

/// Ends when the viewer does; never, if we have not started one.
pub async fn ended(viewer: &mut Option<tokio::process::Child>) -> String {
    match viewer {
        Some(viewer) => match viewer.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        },
        None => std::future::pending().await,
    }
}
