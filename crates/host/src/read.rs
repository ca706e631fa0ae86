//! Small files of the kernel, and what can be wrong with them.

use std::io;
use std::path::{Path, PathBuf};

/// A fact could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not there or not ours to read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file says something that is not understood.
    #[error("cannot understand {}, which says {text:?}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Its beginning.
        text: String,
    },
}

/// Reads a file.
pub(crate) fn text(path: &Path) -> Result<String, ReadError> {
    std::fs::read_to_string(path).map_err(|source| ReadError::File { path: path.into(), source })
}

/// Reads a file and understands it.
pub(crate) fn parsed<T>(path: &Path, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, ReadError> {
    let text = text(path)?;
    parse(&text).ok_or_else(|| ReadError::Text { path: path.into(), text: text.chars().take(80).collect() })
}

/// Finds the value of a line such as `Name:  value` or `name value`.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let value = line.strip_prefix(name)?;
        value.strip_prefix([':', ' ', '\t']).map(str::trim)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_fields() {
        let text = "Rss:\t  12 kB\nRss_Anon: 3 kB\noom_kill 7\noom_kill_disable 1\nEmpty:\n";
        for (name, expected) in [
            ("Rss", Some("12 kB")),
            ("Rss_Anon", Some("3 kB")),
            ("oom_kill", Some("7")),
            ("oom", None),
            ("Empty", Some("")),
            ("Other", None),
        ] {
            assert_eq!(field(text, name), expected, "{name}");
        }
    }

    #[test]
    fn says_which_file() {
        let path = Path::new("/proc/self/status");
        assert_eq!(parsed(path, |_| None::<()>).unwrap_err().to_string().find("/proc/self/status"), Some(18));
        assert!(text(Path::new("/nowhere")).unwrap_err().to_string().contains("/nowhere"));
    }
}
