//! Objects as people and programs read them.

use std::io::{self, Write};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

/// The format of an object that is printed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// JSON, indented by two.
    Json,
    /// YAML.
    Yaml,
}

impl Format {
    /// From the value of `--output`.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            other => bail!("not supported output format defined: {other}; use yaml or json"),
        }
    }

    /// The object in this format, with a newline at its end.
    pub fn render(self, object: &impl Serialize) -> Result<String> {
        let mut text = match self {
            Self::Json => serde_json::to_string_pretty(object).context("the object is not JSON")?,
            Self::Yaml => serde_saphyr::to_string(object).context("the object is not YAML")?,
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(text)
    }
}

/// Prints a line on standard output, and goes on if nobody reads it.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::output::line(&format!($($words)*))
    };
}
pub(crate) use say;

/// Prints a line on standard error, for what is not the output itself, and goes on if nobody reads it.
macro_rules! note {
    ($($words:tt)*) => {
        $crate::output::beside(&format!("{}\n", format_args!($($words)*)))
    };
}
pub(crate) use note;

/// Writes a line to standard output. What is done is done, whether somebody reads of it or not.
pub fn line(text: &str) {
    let _ = bytes(format!("{text}\n").as_bytes());
}

/// Writes to standard error. A terminal that is gone changes nothing.
pub fn beside(text: &str) {
    let _ = write(io::stderr().lock(), text.as_bytes());
}

/// Writes to standard output; a reader who has gone away (`| head`) is no failure.
pub fn print(text: &str) -> Result<()> {
    bytes(text.as_bytes())
}

/// Writes bytes to standard output.
pub fn bytes(bytes: &[u8]) -> Result<()> {
    write(io::stdout().lock(), bytes).context("standard output cannot be written")
}

fn write(mut out: impl Write, bytes: &[u8]) -> io::Result<()> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_may_leave_but_a_disk_may_not_be_full() {
        for (kind, expected) in [(io::ErrorKind::BrokenPipe, true), (io::ErrorKind::StorageFull, false)] {
            assert_eq!(write(Broken(kind), b"text").is_ok(), expected, "{kind}");
        }
        let mut out = Vec::new();
        write(&mut out, b"text").unwrap();
        assert_eq!(out, b"text");
    }
}
