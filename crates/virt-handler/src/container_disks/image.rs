//! The file of a disk in a container image, whose maker may have put links into it.

use std::io;
use std::path::Path;

use kubevirt_host::inside::Inside;

/// Where the disk is in an image that does not say it.
const DEFAULT_FOLDER: &str = "disk";

/// Finds a file in an image; without a path, the only one in `/disk`.
pub fn find(root: &Inside, path: Option<&str>) -> io::Result<Inside> {
    if let Some(path) = path {
        return root.in_root(path);
    }
    let folder = root.in_root(DEFAULT_FOLDER)?;
    let names = folder.names()?;
    let problem = |text: &str| Err(io::Error::new(io::ErrorKind::NotFound, text));
    match &names[..] {
        [name] => root.in_root(Path::new(DEFAULT_FOLDER).join(name)),
        [] => problem("there is no file in /disk; put the disk there, or name it in containerDisk.path"),
        _ => problem("there is more than one file in /disk; name the disk in containerDisk.path"),
    }
}
