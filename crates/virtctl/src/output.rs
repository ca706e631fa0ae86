//! Objects as people and programs read them.

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

/// Prints a line, as `println!` does, but goes on if nobody reads it.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::output::line(&format!($($words)*))
    };
}
pub(crate) use say;

/// Writes a line to standard output. What is done is done, whether somebody reads of it or not.
pub fn line(text: &str) {
    let _ = bytes(format!("{text}\n").as_bytes());
}

/// Writes to standard output; a reader who has gone away (`| head`) is no failure.
pub fn print(text: &str) -> Result<()> {
    bytes(text.as_bytes())
}

/// Writes bytes to standard output.
pub fn bytes(bytes: &[u8]) -> Result<()> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("standard output cannot be written")
        }
        _ => Ok(()),
    }
}
