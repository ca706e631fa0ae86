//! The checksums that make a folder of the cache whole: written last, checked before every use.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::sha256::of_file;

const FILE: &str = "SHA256SUMS";

/// Writes the checksums of the files called `names` in `folder`, in the format of `sha256sum`.
pub fn write(folder: &Path, names: &[&str]) -> Result<()> {
    let lines: Result<String> =
        names.iter().map(|name| Ok(format!("{}  {name}\n", of_file(&folder.join(name))?))).collect();
    Ok(fs::write(folder.join(FILE), lines?)?)
}

/// Checks that the files called `names` are in `folder` as they were written.
pub fn check(folder: &Path, names: &[&str]) -> Result<()> {
    let list = fs::read_to_string(folder.join(FILE)).with_context(|| format!("{FILE} is missing"))?;
    for name in names {
        let expected =
            list.lines().filter_map(|line| line.split_once("  ")).find(|(_, listed)| listed == name);
        let (expected, _) = expected.with_context(|| format!("{name} has no checksum"))?;
        ensure!(of_file(&folder.join(name))? == expected, "{name} has changed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_what_is_missing_or_changed() {
        let folder = std::env::temp_dir().join(format!("kubevirt-rs-sums-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a"), "abc").unwrap();
        let names = &["a"];
        assert!(check(&folder, names).is_err(), "no list yet");
        write(&folder, names).unwrap();
        check(&folder, names).unwrap();
        assert!(check(&folder, &["a", "b"]).is_err(), "not listed");
        fs::write(folder.join("a"), "ab").unwrap();
        assert!(check(&folder, names).is_err(), "cut short");
        fs::remove_file(folder.join("a")).unwrap();
        assert!(check(&folder, names).is_err(), "gone");
        fs::remove_dir_all(folder).unwrap();
    }
}
