//! The image of pods' first containers: a static program of ours and nothing else.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::super::{image, node::config::PAUSE_IMAGE};
use super::checksums;

/// The file in the folder.
pub const ARCHIVE: &str = "pause.tar";

const SOURCE: &str = include_str!("../../../pause/main.rs");

/// The name of the folder in the cache, which changes with the program.
pub fn folder() -> String {
    format!("pause-{:.12}", checksums::of_bytes(SOURCE.as_bytes()))
}

/// Builds the archive into `output`.
pub fn build(aside: &Path, output: &Path) -> Result<()> {
    let (source, root) = (aside.join("main.rs"), aside.join("root"));
    fs::create_dir_all(&root)?;
    fs::write(&source, SOURCE)?;
    let rustc = Command::new(option_env!("RUSTC").unwrap_or("rustc"))
        .args([
            "--edition=2024",
            "-O",
            "-Ctarget-feature=+crt-static",
            "-Cpanic=abort",
            "-Cstrip=symbols",
            "-o",
        ])
        .arg(root.join("pause"))
        .arg(&source)
        .output()
        .context("run rustc")?;
    ensure!(rustc.status.success(), "rustc: {}", String::from_utf8_lossy(&rustc.stderr));
    image::pack(&root, PAUSE_IMAGE, &json!({"Entrypoint": ["/pause"]}), &output.join(ARCHIVE))
}
