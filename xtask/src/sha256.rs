//! SHA-256, in hex.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use ring::digest::{Context as Digest, SHA256};

/// Of a file.
pub fn of_file(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    let mut writer = Writer::new(io::sink());
    io::copy(&mut io::BufReader::with_capacity(1 << 20, &mut file), &mut writer)
        .with_context(|| format!("read {}", path.display()))?;
    Ok(writer.finish().digest)
}

/// Of bytes.
pub fn of_bytes(bytes: &[u8]) -> String {
    hex(ring::digest::digest(&SHA256, bytes).as_ref())
}

/// Writes on, and takes the digest of what passes.
pub struct Writer<W> {
    inner: W,
    digest: Digest,
    size: u64,
}

/// What passed a [`Writer`].
pub struct Written<W> {
    /// Where it went.
    pub inner: W,
    /// The digest, in hex.
    pub digest: String,
    /// How many bytes.
    pub size: u64,
}

impl<W: Write> Writer<W> {
    /// A writer to `inner`.
    pub fn new(inner: W) -> Self {
        Self { inner, digest: Digest::new(&SHA256), size: 0 }
    }

    /// The end of it.
    pub fn finish(self) -> Written<W> {
        Written { inner: self.inner, digest: hex(self.digest.finish().as_ref()), size: self.size }
    }
}

impl<W: Write> Write for Writer<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.digest.update(&buffer[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_sha256() {
        const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of_bytes(b"abc"), ABC);
        let mut writer = Writer::new(Vec::new());
        writer.write_all(b"a").unwrap();
        writer.write_all(b"bc").unwrap();
        let written = writer.finish();
        assert_eq!((written.digest.as_str(), written.size, written.inner.as_slice()), (ABC, 3, &b"abc"[..]));
    }
}
