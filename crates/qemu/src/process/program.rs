//! Where a QEMU is.

use std::path::{Path, PathBuf};

/// What distributions call the one of their own architecture that they keep out of the way.
const KEPT_APART: &str = "/usr/libexec/qemu-kvm";

/// The file of a program in `PATH`, if there is one.
pub fn in_path(name: impl AsRef<Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|file| file.is_file())
}

/// The QEMU of this name, or the one of the host's own architecture under its other name. A name that nothing has stays
/// as it is: who runs it is told that it is missing.
pub fn qemu(name: &str) -> PathBuf {
    let apart = || Some(PathBuf::from(KEPT_APART)).filter(|file| file.is_file());
    in_path(name).or_else(apart).unwrap_or_else(|| name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_there_is() {
        let found = qemu("qemu-img");
        assert!(found.is_absolute() && found.ends_with("qemu-img"), "{}", found.display());
        assert_eq!(in_path("qemu-of-nowhere"), None);
    }
}
