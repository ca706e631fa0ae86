//! The command line.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// How the program is called.
pub const USAGE: &str = "\
Holds a container open, so that the disk in its image can be used from outside.

usage: container-disk --copy-path PATH   listen on PATH.sock until told to stop, or until that file is removed
       container-disk --no-op            end at once: the image is there and can run this program
";

/// Longest path of a socket: an address has 108 bytes, the last of which is zero.
const LONGEST_SOCKET: usize = 107;

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Task {
    /// End at once.
    Nothing,
    /// Say how the program is called.
    Help,
    /// Listen on this socket.
    Listen(PathBuf),
}

/// Reads the arguments that follow the program's name.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Task, String> {
    let mut arguments = arguments.into_iter();
    let mut copy_path = None;
    while let Some(argument) = arguments.next() {
        match argument.as_bytes() {
            b"--no-op" => return Ok(Task::Nothing),
            b"--help" | b"-h" => return Ok(Task::Help),
            b"--copy-path" | b"-c" => {
                copy_path = Some(arguments.next().ok_or("--copy-path needs a path")?);
            }
            other => match other.strip_prefix(b"--copy-path=") {
                Some(path) => copy_path = Some(OsString::from_vec(path.to_vec())),
                None => return Err(format!("unknown argument {}\n\n{USAGE}", argument.display())),
            },
        }
    }
    socket(copy_path.ok_or_else(|| format!("--copy-path or --no-op is needed\n\n{USAGE}"))?).map(Task::Listen)
}

fn socket(copy_path: OsString) -> Result<PathBuf, String> {
    if copy_path.is_empty() {
        return Err("--copy-path needs a path".into());
    }
    let mut socket = copy_path.clone();
    socket.push(".sock");
    if socket.len() > LONGEST_SOCKET {
        let longest = LONGEST_SOCKET - ".sock".len();
        return Err(format!(
            "the path of --copy-path has {} bytes, a socket's path can have {longest}: {}",
            copy_path.len(),
            copy_path.display()
        ));
    }
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Task, String> {
        parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn reads_what_pods_say() {
        let disk = || Ok(Task::Listen("/x/disk_0.sock".into()));
        for (arguments, expected) in [
            (&["--no-op"][..], Ok(Task::Nothing)),
            (&["--help"], Ok(Task::Help)),
            (&["--copy-path", "/x/disk_0"], disk()),
            (&["--copy-path=/x/disk_0"], disk()),
            (&["-c", "/x/disk_0"], disk()),
            (&["--copy-path", "/x/disk_1", "-c", "/x/disk_0"], disk()),
            (&["--copy-path", "/x", "--no-op"], Ok(Task::Nothing)),
        ] {
            assert_eq!(parsed(arguments), expected, "{arguments:?}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        let long = "x".repeat(103);
        for (arguments, expected) in [
            (&[][..], "--copy-path or --no-op is needed"),
            (&["--copy-path"], "--copy-path needs a path"),
            (&["--copy-path="], "--copy-path needs a path"),
            (&["--copy-path", &long], "has 103 bytes, a socket's path can have 102"),
            (&["--copy", "/x"], "unknown argument --copy\n"),
            (&["disk"], "unknown argument disk\n"),
        ] {
            let problem = parsed(arguments).unwrap_err();
            assert!(problem.contains(expected), "{arguments:?}: {problem}");
        }
        assert!(parsed(&["-c", &long[1..]]).is_ok());
    }
}
