//! ISO images of mounted folders.

use std::io::BufWriter;
use std::path::Path;

use kubevirt_disk_image::iso::{Entry, Iso, IsoError};
use kubevirt_disk_image::{ImageError, replace};

use super::error::Problem;
use super::source::Source;

/// Permissions of files that come from a ConfigMap or the like.
const MODE: u32 = 0o644;
const ANSWER_FILES: [&str; 2] = ["autounattend.xml", "unattend.xml"];

/// Makes an ISO image of a mounted folder.
pub fn of_folder(path: &Path, folder: &Path, label: &str, needs_answer_file: bool) -> Result<(), Problem> {
    match try_folder(path, folder, label, needs_answer_file) {
        // The folder was just replaced by a newer state, and the older one is gone.
        Err(Problem::Iso(IsoError::Changed(_) | IsoError::Read { .. })) => {
            try_folder(path, folder, label, needs_answer_file)
        }
        done => done,
    }
}

fn try_folder(path: &Path, folder: &Path, label: &str, needs_answer_file: bool) -> Result<(), Problem> {
    let source = Source::open(folder)?;
    let files = source.files(folder)?;
    let is_answer_file = |name: &str| ANSWER_FILES.iter().any(|file| file.eq_ignore_ascii_case(name));
    if needs_answer_file && !files.iter().any(|file| is_answer_file(&file.path)) {
        return Err(Problem::NoAnswerFile);
    }
    let entries: Vec<_> =
        files.iter().map(|file| Entry { path: file.path.clone(), size: file.size, mode: MODE }).collect();
    let iso = Iso::plan(label, entries)?;
    write(path, &iso, |index| source.file(&files[index].path))
}

/// Makes an ISO image of bytes in memory.
pub fn of_bytes(path: &Path, label: &str, files: &[(&str, &[u8])]) -> Result<(), Problem> {
    // User data may hold passwords: in the guest, too, only root reads it.
    let entry =
        |(name, bytes): &(&str, &[u8])| Entry { path: (*name).into(), size: bytes.len() as u64, mode: 0o600 };
    let iso = Iso::plan(label, files.iter().map(entry).collect())?;
    write(path, &iso, |index| Ok(files[index].1))
}

fn write<R: std::io::Read>(
    path: &Path,
    iso: &Iso,
    open: impl FnMut(usize) -> std::io::Result<R>,
) -> Result<(), Problem> {
    let mut problem = None;
    let written = replace(path, 0o640, |file| {
        iso.write(BufWriter::with_capacity(64 << 10, file), open).map_err(|error| match error {
            IsoError::Write(source) => ImageError::io("write", path, source),
            error => {
                let what = error.to_string();
                problem = Some(Problem::Iso(error));
                ImageError::Corrupt { path: path.into(), what }
            }
        })
    });
    match (problem, written) {
        (Some(problem), Err(_)) => Err(problem),
        (_, written) => Ok(written?),
    }
}
