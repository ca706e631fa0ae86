//! A registry that nodes pull from: it serves archives, and stands in for every other registry.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;

use super::layout::HUB;

/// Where it listens, in the control plane's network.
pub const PORT: u16 = 5000;

/// Where nodes send whoever asks for an image, whatever registry its name says.
pub fn hosts() -> String {
    let here = format!("http://{HUB}:{PORT}");
    format!("server = \"{here}\"\n\n[host.\"{here}\"]\ncapabilities = [\"pull\", \"resolve\"]\n")
}

/// A registry that runs until it is dropped.
#[derive(Debug)]
pub struct Registry {
    listener: TcpListener,
    thread: Option<JoinHandle<()>>,
}

impl Registry {
    /// Serves archives under names such as `kubevirt/demo`, with any tag, in the network of the process `hub`.
    pub fn serve(hub: u32, images: &[(&str, &Path)]) -> Result<Self> {
        let mut shelf = Shelf::default();
        for (name, archive) in images {
            shelf.add(name, archive).with_context(|| format!("read {}", archive.display()))?;
        }
        let listener = listen(hub).context("listen for nodes that pull")?;
        let (own, shelf) = (listener.try_clone()?, Arc::new(shelf));
        let thread = std::thread::spawn(move || {
            for stream in own.incoming() {
                let Ok(stream) = stream else { break };
                let shelf = shelf.clone();
                // A node that goes away in between is no concern of others.
                std::thread::spawn(move || answer(stream, &shelf));
            }
        });
        Ok(Self { listener, thread: Some(thread) })
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A socket stays where it was made, so only the thread that makes it enters the network.
fn listen(hub: u32) -> Result<TcpListener> {
    const PATIENCE: Duration = Duration::from_secs(300);
    let enter = move || -> Result<TcpListener> {
        let network = File::open(format!("/proc/{hub}/ns/net"))?;
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
        let begin = Instant::now();
        loop {
            match TcpListener::bind(SocketAddr::from((HUB, PORT))) {
                // Another test has one of its own, for a while.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && begin.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                bound => return Ok(bound?),
            }
        }
    };
    std::thread::spawn(enter).join().map_err(|_| anyhow!("the thread panicked"))?
}

/// What there is to serve.
#[derive(Debug, Default)]
struct Shelf {
    /// The digest of the manifest of each name.
    names: BTreeMap<String, String>,
    blobs: BTreeMap<String, Blob>,
}

/// A part of an archive.
#[derive(Clone, Debug)]
struct Blob {
    archive: PathBuf,
    start: u64,
    size: u64,
}

impl Shelf {
    fn add(&mut self, name: &str, archive: &Path) -> Result<()> {
        let mut index = Value::Null;
        let mut files = tar::Archive::new(File::open(archive)?);
        for entry in files.entries()? {
            let mut entry = entry?;
            let path = entry.path()?.display().to_string();
            if path == "index.json" {
                index = serde_json::from_reader(&mut entry)?;
            } else if let Some(digest) = path.strip_prefix("blobs/sha256/") {
                let (start, size) = (entry.raw_file_position(), entry.size());
                let blob = Blob { archive: archive.to_owned(), start, size };
                self.blobs.insert(format!("sha256:{digest}"), blob);
            }
        }
        let digest = index["manifests"][0]["digest"].as_str().context("an archive without manifest")?;
        self.names.insert(name.to_owned(), digest.to_owned());
        Ok(())
    }

    /// What is at a path: its type, its digest and where its bytes are.
    fn find(&self, path: &str) -> Option<(&'static str, String, &Blob)> {
        let path = path.split('?').next()?.strip_prefix("/v2/")?;
        let (kind, digest) = if let Some((name, tag)) = path.split_once("/manifests/") {
            let digest = if tag.contains(':') { tag } else { self.names.get(name)? };
            (crate::image::MANIFEST, digest)
        } else {
            ("application/octet-stream", path.split_once("/blobs/")?.1)
        };
        Some((kind, digest.to_owned(), self.blobs.get(digest)?))
    }
}

/// Answers the one request of a connection.
fn answer(mut stream: TcpStream, shelf: &Shelf) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match shelf.find(path) {
        Some((kind, digest, blob)) => {
            let size = blob.size;
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\n\
                 Docker-Content-Digest: {digest}\r\nConnection: close\r\n\r\n"
            )?;
            if method == "GET" {
                let mut file = File::open(&blob.archive)?;
                file.seek(SeekFrom::Start(blob.start))?;
                io::copy(&mut file.take(size), &mut stream)?;
            }
        }
        None => {
            let status = if path == "/v2/" { "200 OK" } else { "404 Not Found" };
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
        }
    }
    stream.shutdown(Shutdown::Write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Config, Image};

    #[test]
    fn what_is_packed_is_found_under_its_name_and_its_digest() {
        let folder = std::env::temp_dir().join(format!("kubevirt-rs-registry-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let archive = folder.join("image.tar");
        let image = Image { reference: "a/b:1".into(), layers: vec![], config: Config::default() };
        image.pack(&archive).unwrap();
        let mut shelf = Shelf::default();
        shelf.add("some/demo", &archive).unwrap();

        let (kind, digest, blob) = shelf.find("/v2/some/demo/manifests/latest?ns=docker.io").unwrap();
        assert_eq!(kind, crate::image::MANIFEST);
        let bytes = std::fs::read(&archive).unwrap();
        let start = usize::try_from(blob.start).unwrap();
        let manifest = &bytes[start..start + usize::try_from(blob.size).unwrap()];
        assert_eq!(format!("sha256:{}", crate::sha256::of_bytes(manifest)), digest);
        let manifest: Value = serde_json::from_slice(manifest).unwrap();
        let config = manifest["config"]["digest"].as_str().unwrap();
        assert!(shelf.find(&format!("/v2/some/demo/blobs/{config}")).is_some());
        assert!(shelf.find(&format!("/v2/some/demo/manifests/{digest}")).is_some());
        for nothing in ["/v2/other/manifests/latest", "/v2/some/demo/blobs/sha256:0", "/v2/", ""] {
            assert!(shelf.find(nothing).is_none(), "{nothing}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
