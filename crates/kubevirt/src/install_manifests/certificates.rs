//! Certificates in a folder: one folder for each secret, with the files that the secret has.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use kubevirt_virt_operator::Certificates;
use kubevirt_virt_operator::certificates::Pair;

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// What the folder has, by secret; nothing if there is no folder.
pub(super) fn read(folder: &Path) -> Result<BTreeMap<String, Pair>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries.with_context(|| format!("read {}", folder.display()))?,
    };
    let mut found = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        let text = |name: &str| {
            let file = path.join(name);
            fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))
        };
        if path.join(CERTIFICATE).exists() {
            let secret = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.insert(secret, Pair { certificate: text(CERTIFICATE)?, key: text(KEY)? });
        }
    }
    Ok(found)
}

/// Puts all certificates into the folder, which nobody else may read.
pub(super) fn write(folder: &Path, certificates: &Certificates) -> Result<()> {
    for (secret, pair) in certificates.pairs() {
        let place = folder.join(secret);
        let written = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&place)
            .and_then(|()| write_private(&place.join(KEY), &pair.key))
            .and_then(|()| write_private(&place.join(CERTIFICATE), &pair.certificate));
        written.with_context(|| format!("write {}", place.display()))?;
    }
    Ok(())
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}
