//! Programs that run beside QEMU: the emulator of a TPM, and user-mode networking.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Stdio;

use kubevirt_domain::domain::network::NetBackend;
use kubevirt_domain::swtpm::{Swtpm, SwtpmFacts};
use kubevirt_domain::{Domain, passt};
use tokio::process::{Child, Command};

use super::Way;
use crate::error::CommandError;
use crate::orphans;

/// Starts what a machine needs beside QEMU. They end when they are dropped, or when QEMU does.
pub(super) async fn start(domain: &Domain, way: Way) -> Result<Vec<Child>, CommandError> {
    let mut companions = Vec::new();
    if let Some(tpm) = &domain.devices.tpm {
        let facts = SwtpmFacts {
            incoming: way == Way::Incoming,
            releases_lock: tpm.persistent && leaves_state_to_others().await?,
        };
        if let Some(swtpm) = Swtpm::of(domain, facts) {
            companions.push(start_tpm(&swtpm).await?);
        }
    }
    for interface in &domain.interfaces {
        if let NetBackend::VhostUser { socket, ports } = &interface.backend {
            companions.push(spawn("passt", passt::arguments(socket, ports))?);
        }
    }
    Ok(companions)
}

/// Whether this emulator can leave state to the one on another node: an older one refuses to be told about it.
async fn leaves_state_to_others() -> Result<bool, CommandError> {
    let _held = orphans::hold();
    let told = Command::new("swtpm").args(["socket", "--print-capabilities"]).output().await;
    let told = told.map_err(|source| not_started("swtpm", source))?;
    Ok(String::from_utf8_lossy(&told.stdout).contains("\"cmdarg-migration\""))
}

async fn start_tpm(swtpm: &Swtpm) -> Result<Child, CommandError> {
    let state = Path::new(&swtpm.state);
    let what = || CommandError::io(format!("cannot make {}", state.display()));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(what())?;
    let empty = state.read_dir().map_err(what())?.next().is_none();
    if let Some(setup) = swtpm.setup.as_ref().filter(|_| empty) {
        let _held = orphans::hold();
        let done = Command::new("swtpm_setup").args(setup).output().await;
        match done {
            Ok(done) if done.status.success() => {}
            // A TPM without certificates is still a TPM; one is made at the first start.
            Ok(done) => {
                let words = String::from_utf8_lossy(&done.stdout);
                tracing::warn!(%words, "the TPM gets no certificates");
            }
            Err(error) => tracing::warn!(%error, "the TPM gets no certificates"),
        }
    }
    spawn("swtpm", &swtpm.arguments)
}

fn spawn(
    program: &str,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<Child, CommandError> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    orphans::own(|| command.spawn()).map_err(|source| not_started(program, source))
}

fn not_started(program: &str, source: io::Error) -> CommandError {
    match source.kind() {
        io::ErrorKind::NotFound => {
            CommandError::Unsupported(format!("the launcher's image has no program {program}"))
        }
        _ => CommandError::io(format!("cannot start {program}"))(source),
    }
}
