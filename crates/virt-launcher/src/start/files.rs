//! Files and folders that must be there before QEMU starts.

use std::fs;
use std::io;
use std::path::Path;

use kubevirt_domain::Domain;
use kubevirt_domain::domain::firmware::Firmware;

use crate::error::CommandError;

/// Makes the folders of a machine's sockets and the small files that its arguments speak of.
pub(super) fn prepare(domain: &Domain, machine_folder: &Path) -> Result<(), CommandError> {
    folder(machine_folder)?;
    for file in &domain.files {
        write(Path::new(&file.path), file.content.as_bytes())?;
    }
    if let Firmware::Flash { vars, template, .. } = &domain.firmware {
        copy_once(Path::new(template), Path::new(vars))?;
    }
    Ok(())
}

fn folder(path: &Path) -> Result<(), CommandError> {
    fs::create_dir_all(path).map_err(CommandError::io(format!("cannot make {}", path.display())))
}

fn write(path: &Path, content: &[u8]) -> Result<(), CommandError> {
    if let Some(parent) = path.parent() {
        folder(parent)?;
    }
    fs::write(path, content).map_err(CommandError::io(format!("cannot write {}", path.display())))
}

/// Copies a file unless the copy exists: a guest's UEFI variables outlive a restart.
fn copy_once(from: &Path, to: &Path) -> Result<(), CommandError> {
    if to.exists() {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        folder(parent)?;
    }
    // Under another name first, so that nobody ever finds half of it.
    let partial = to.with_extension("partial");
    let copied: io::Result<()> = fs::copy(from, &partial).and_then(|_| fs::rename(&partial, to));
    copied.map_err(CommandError::io(format!("cannot copy {} to {}", from.display(), to.display())))
}
