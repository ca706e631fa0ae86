//! The image of pods' first containers: a static program of ours and nothing else.

use std::path::Path;

use anyhow::Result;

use super::super::node::config::PAUSE_IMAGE;
use crate::{image, sha256};

/// The file in the folder.
pub const ARCHIVE: &str = "pause.tar";

const SOURCE: &str = include_str!("../../../pause/main.rs");

/// The name of the folder in the cache, which changes with the program.
pub fn folder() -> String {
    format!("pause-{:.12}", sha256::of_bytes(SOURCE.as_bytes()))
}

/// Builds the archive into `output`.
pub fn build(aside: &Path, output: &Path) -> Result<()> {
    image::pack_program("pause", SOURCE, PAUSE_IMAGE, aside, &output.join(ARCHIVE))
}
