//! `cargo xtask crds`: the CustomResourceDefinitions, written from the types.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kubevirt_api::crd::{KINDS, Kind, definition};

/// Writes every definition into a folder, and removes what no longer belongs there.
pub fn write(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let wanted: Vec<(PathBuf, String)> =
        KINDS.iter().map(|kind| Ok((folder.join(file_name(kind)), text(kind)?))).collect::<Result<_>>()?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !wanted.iter().any(|(name, _)| *name == path) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    for (path, text) in wanted {
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Fails unless the folder holds exactly what [`write`] would put there.
#[cfg(test)]
fn check(folder: &Path) -> Result<()> {
    for kind in KINDS {
        let path = folder.join(file_name(kind));
        let found = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        anyhow::ensure!(found == text(kind)?, "{} is out of date: run `cargo xtask crds`", path.display());
    }
    let files = fs::read_dir(folder)?.count();
    anyhow::ensure!(files == KINDS.len(), "{} has {files} files for {} kinds", folder.display(), KINDS.len());
    Ok(())
}

fn file_name(kind: &Kind) -> String {
    format!("{}.{}.yaml", kind.plural, kind.group)
}

fn text(kind: &Kind) -> Result<String> {
    serde_saphyr::to_string(&definition(kind)).with_context(|| format!("cannot write {} as YAML", kind.name))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_committed_definitions_are_the_generated_ones() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests/crds");
        super::check(&folder).unwrap();
    }
}
