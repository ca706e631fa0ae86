//! The key that guests of a run let in, made for it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};

/// A pair of keys.
pub struct Key {
    /// The file of the private one.
    pub private: PathBuf,
    /// The public one, as guests take it.
    pub public: String,
}

/// The key of this run.
pub fn key() -> Result<&'static Key> {
    static KEY: OnceLock<Result<Key, String>> = OnceLock::new();
    KEY.get_or_init(|| make().map_err(|error| format!("{error:#}")))
        .as_ref()
        .map_err(|error| anyhow!("{error}"))
}

fn make() -> Result<Key> {
    let folder = std::env::temp_dir().join(format!("kubevirt-rs-key-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let private = folder.join("id");
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", "tests", "-f"]).arg(&private);
    ensure!(command.status().context("run ssh-keygen")?.success(), "ssh-keygen failed");
    let public = std::fs::read_to_string(private.with_extension("pub"))?.trim().to_owned();
    Ok(Key { private, public })
}
