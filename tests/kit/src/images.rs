//! Images of a test, loaded once.

use std::fs;
use std::path::Path;

use anyhow::Result;
use xtask::cluster::lock;
use xtask::{image, sha256};

use crate::Test;

impl Test {
    /// Loads the images of an archive (OCI or Docker) on all nodes.
    pub fn load_image(&self, archive: &Path) -> Result<()> {
        self.cluster().load_image(archive)
    }

    /// Has `pack` write an archive and loads it on all nodes, once in the life of the cluster for each `key`.
    /// `pack` gets a folder for files on the way, and the path of the archive.
    pub fn load_image_once(&self, key: &str, pack: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<()> {
        let images = self.cluster().layout().root().join("images");
        fs::create_dir_all(&images)?;
        let _lock = lock::file(&images.join(format!("{key}.lock")), || {})?;
        let (loaded, aside) = (images.join(format!("{key}.loaded")), images.join(key));
        if !loaded.exists() {
            fs::create_dir_all(&aside)?;
            let archive = aside.join("image.tar");
            pack(&aside, &archive)?;
            self.load_image(&archive)?;
            fs::remove_dir_all(&aside)?;
            fs::write(loaded, "")?;
        }
        Ok(())
    }

    /// Loads an image of one Rust program without dependencies, which it runs, and returns its name.
    pub fn load_program(&self, name: &str, source: &str) -> Result<String> {
        let key = format!("{name}-{:.12}", sha256::of_bytes(source.as_bytes()));
        let reference = format!("localhost/kubevirt-rs/{name}:{}", &key[name.len() + 1..]);
        self.load_image_once(&key, |aside, archive| {
            image::pack_program(name, source, &reference, aside, archive)
        })?;
        Ok(reference)
    }
}
