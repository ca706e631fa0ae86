//! The programs of the images, static so that they run in any of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Profile;

/// Programs that were built.
pub(super) struct Programs {
    /// The one binary.
    pub(super) kubevirt: PathBuf,
    /// The one that is copied into foreign images.
    pub(super) container_disk: PathBuf,
    /// The folder of the build.
    pub(super) target: PathBuf,
}

/// Builds them, as far as they are out of date.
pub(super) fn build(profile: Profile) -> Result<Programs> {
    let kubevirt = compile("kubevirt", profile)?;
    // It has no dependencies, and must be small wherever it goes.
    let container_disk = compile("container-disk", Profile::Release)?;
    let target = kubevirt.ancestors().nth(2).context("a program without a folder")?.to_owned();
    Ok(Programs { kubevirt, container_disk, target })
}

fn compile(package: &str, profile: Profile) -> Result<PathBuf> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    command.args([
        "rustc",
        "--locked",
        "--message-format=json-render-diagnostics",
        "--bin",
        package,
        "-p",
        package,
    ]);
    let flags: &[&str] = match profile {
        Profile::Dev => &["-C", "strip=symbols"],
        Profile::Release => {
            command.arg("--release");
            // Word for word as in the Makefile: another spelling builds it anew.
            &["-C", "relocation-model=static"]
        }
    };
    command.args(["--", "-C", "target-feature=+crt-static"]).args(flags).stderr(Stdio::inherit());
    // What `cargo test` and `cargo run` set for the program that calls this would build everything anew.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_BIN_NAME" {
            command.env_remove(&*name);
        }
    }
    let output = command.output().context("run cargo")?;
    ensure!(output.status.success(), "cargo could not build {package}");
    executable(&String::from_utf8_lossy(&output.stdout)).with_context(|| format!("cargo built no {package}"))
}

/// The program that the messages of cargo name.
fn executable(messages: &str) -> Option<PathBuf> {
    let path = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message["executable"].as_str()?))
    };
    messages.lines().filter_map(path).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_program_in_the_messages() {
        let messages = concat!(
            "{\"reason\":\"compiler-artifact\",\"executable\":null}\n",
            "{\"reason\":\"compiler-artifact\",\"executable\":\"/t/debug/kubevirt\"}\n",
            "{\"reason\":\"build-finished\",\"success\":true}\n",
        );
        assert_eq!(executable(messages), Some("/t/debug/kubevirt".into()));
        assert_eq!(executable("no json"), None);
    }
}
