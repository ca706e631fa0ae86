//! Container images without a Docker daemon or a registry: folders packed as an OCI archive.

pub mod capabilities;
pub mod cli;
pub mod layer;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::{Value, json};
use tar::{Builder, Header};

use crate::sha256;
use layer::Layer;

/// An image to pack.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its name, such as `localhost/virt-launcher:1`.
    pub reference: String,
    /// Its layers, the lowest first.
    pub layers: Vec<Layer>,
    /// What runs in it.
    pub config: Config,
}

/// What runs in an image.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Config {
    /// The program and its first arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
    /// Further arguments, which a pod may replace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cmd: Vec<String>,
    /// The environment, as `NAME=VALUE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The user, and the group after a colon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
}

impl Image {
    /// An image of one program that `root` holds.
    pub fn of_program(reference: &str, root: &Path, program: &str) -> Self {
        let config = Config { entrypoint: vec![program.to_owned()], ..Config::default() };
        Self { reference: reference.to_owned(), layers: vec![Layer::of_root(root)], config }
    }

    /// Writes the image as an OCI archive, which depends on nothing but the image.
    pub fn pack(&self, output: &Path) -> Result<()> {
        // Under another name at first: no one takes half an archive for a whole one.
        let aside = Aside(with_suffix(output, ".new"));
        let file = File::create(&aside.0).with_context(|| format!("write {}", output.display()))?;
        let mut archive = Builder::new(BufWriter::new(file));
        append(&mut archive, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;

        let mut layers = Vec::new();
        for layer in &self.layers {
            let layer = append_layer(&mut archive, layer, &with_suffix(output, ".layer"))?;
            layers.push(layer);
        }
        let digests: Vec<&Value> = layers.iter().map(|layer| &layer["digest"]).collect();
        let config = append_blob(
            &mut archive,
            "application/vnd.oci.image.config.v1+json",
            &json!({
                "architecture": architecture(),
                "os": "linux",
                "config": self.config,
                "rootfs": {"type": "layers", "diff_ids": digests},
            }),
        )?;
        let mut manifest = append_blob(
            &mut archive,
            MANIFEST,
            &json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}),
        )?;
        manifest["annotations"] = json!({NAME: self.reference});
        let index = json!({"schemaVersion": 2, "manifests": [manifest]});
        append(&mut archive, "index.json", &serde_json::to_vec(&index)?)?;
        archive.into_inner()?.into_inner().context("write image")?.sync_all().context("write image")?;
        fs::rename(&aside.0, output).with_context(|| format!("write {}", output.display()))
    }
}

/// The name of the image in an OCI archive.
pub fn reference_of(archive: &Path) -> Result<String> {
    let file = File::open(archive).with_context(|| format!("open {}", archive.display()))?;
    for entry in tar::Archive::new(file).entries()? {
        let entry = entry?;
        if entry.path()?.as_os_str() == "index.json" {
            let index: Value = serde_json::from_reader(entry)?;
            let name = index["manifests"][0]["annotations"][NAME].as_str();
            return Ok(name.with_context(|| format!("{} names no image", archive.display()))?.to_owned());
        }
    }
    anyhow::bail!("{} is no OCI archive", archive.display())
}

/// Where an archive says the name of its image.
const NAME: &str = "io.containerd.image.name";
/// The type of an image's manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// A file that is gone at the end, unless it got another name.
struct Aside(PathBuf);

impl Drop for Aside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.into();
    name.push(suffix);
    name.into()
}

/// Layers may be larger than memory, and their names are known only at their ends: by way of a file.
fn append_layer<W: Write>(archive: &mut Builder<W>, layer: &Layer, aside: &Path) -> Result<Value> {
    let aside = Aside(aside.to_owned());
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&aside.0)?;
    let written = layer.write(sha256::Writer::new(BufWriter::new(file)))?.finish();
    let mut file = written.inner.into_inner().context("write layer")?;
    file.rewind()?;
    append_file(archive, &blob(&written.digest), written.size, BufReader::new(file))?;
    Ok(descriptor(LAYER, &written.digest, written.size))
}

fn append_blob<W: Write>(archive: &mut Builder<W>, media_type: &str, contents: &Value) -> Result<Value> {
    let bytes = serde_json::to_vec(contents)?;
    let digest = sha256::of_bytes(&bytes);
    append(archive, &blob(&digest), &bytes)?;
    Ok(descriptor(media_type, &digest, u64::try_from(bytes.len())?))
}

fn append<W: Write>(archive: &mut Builder<W>, path: &str, bytes: &[u8]) -> Result<()> {
    append_file(archive, path, u64::try_from(bytes.len())?, bytes)
}

fn append_file<W: Write>(archive: &mut Builder<W>, path: &str, size: u64, contents: impl Read) -> Result<()> {
    let mut header = Header::new_ustar();
    header.set_size(size);
    header.set_mode(0o644);
    Ok(archive.append_data(&mut header, path, contents)?)
}

fn blob(digest: &str) -> String {
    format!("blobs/sha256/{digest}")
}

fn descriptor(media_type: &str, digest: &str, size: u64) -> Value {
    json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size})
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Compiles a Rust program without dependencies, links it statically and puts it into `root`, which may be
/// missing. `aside` is a folder for files on the way.
pub fn compile_program(name: &str, source: &str, aside: &Path, root: &Path) -> Result<()> {
    let file = aside.join(format!("{name}.rs"));
    fs::create_dir_all(root)?;
    fs::create_dir_all(aside)?;
    fs::write(&file, source)?;
    let rustc = Command::new("rustc")
        .args([
            "--edition=2024",
            "-O",
            "-Ctarget-feature=+crt-static",
            "-Cpanic=abort",
            "-Cstrip=symbols",
            "-o",
        ])
        .args([&root.join(name), &file])
        .output()
        .context("run rustc")?;
    ensure!(rustc.status.success(), "rustc: {}", String::from_utf8_lossy(&rustc.stderr));
    Ok(())
}

/// Compiles a program as [`compile_program`] does and packs it as the image `reference`, which holds nothing
/// else and runs it.
pub fn pack_program(name: &str, source: &str, reference: &str, aside: &Path, output: &Path) -> Result<()> {
    let root = aside.join("root");
    compile_program(name, source, aside, &root)?;
    Image::of_program(reference, &root, &format!("/{name}")).pack(output)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn files(archive: &Path) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(File::open(archive).unwrap()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            files.insert(entry.path().unwrap().to_string_lossy().into_owned(), bytes);
        }
        files
    }

    #[test]
    fn an_archive_holds_what_its_index_names() {
        let folder = std::env::temp_dir().join(format!("kubevirt-rs-image-{}", std::process::id()));
        let (lower, upper) = (folder.join("lower"), folder.join("upper"));
        for root in [&lower, &upper] {
            fs::create_dir_all(root).unwrap();
        }
        fs::write(upper.join("pause"), "program").unwrap();
        let output = folder.join("image.tar");
        let mut image = Image::of_program("localhost/pause:1", &upper, "/pause");
        image.layers.insert(0, Layer::of_root(&lower));
        image.config.user = Some("107".into());
        image.pack(&output).unwrap();
        let again = folder.join("again.tar");
        image.pack(&again).unwrap();
        assert!(fs::read(&output).unwrap() == fs::read(&again).unwrap(), "the same at any time");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 4, "nothing else is left");

        let files = files(&output);
        let blob = |descriptor: &Value| {
            let name = descriptor["digest"].as_str().unwrap().replace("sha256:", "blobs/sha256/");
            let bytes = &files[&name];
            assert_eq!(descriptor["size"], bytes.len());
            assert_eq!(descriptor["digest"], format!("sha256:{}", sha256::of_bytes(bytes)));
            bytes.clone()
        };
        let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], "localhost/pause:1");
        let manifest: Value = serde_json::from_slice(&blob(&index["manifests"][0])).unwrap();
        let config: Value = serde_json::from_slice(&blob(&manifest["config"])).unwrap();
        assert_eq!(config["config"], json!({"Entrypoint": ["/pause"], "User": "107"}));
        for number in [0, 1] {
            assert_eq!(config["rootfs"]["diff_ids"][number], manifest["layers"][number]["digest"]);
            blob(&manifest["layers"][number]);
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
