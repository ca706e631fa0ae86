//! Container images without a registry: a folder packed as an OCI archive.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tar::{Builder, Header, HeaderMode};

use super::binaries::checksums;

/// Packs the folder `root` as the only layer of the image `reference`; `config` is its OCI `config`, such as
/// `{"Entrypoint": ["/pause"]}`.
pub fn pack(root: &Path, reference: &str, config: &Value, output: &Path) -> Result<()> {
    let mut layer = Builder::new(Vec::new());
    layer.mode(HeaderMode::Deterministic);
    layer.follow_symlinks(false);
    layer.append_dir_all(".", root).with_context(|| format!("pack {}", root.display()))?;
    let layer = layer.into_inner()?;

    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
    });
    let config = serde_json::to_vec(&config)?;
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", &layer)],
    }))?;
    let mut entry = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    entry["annotations"] = json!({"io.containerd.image.name": reference});
    let index = serde_json::to_vec(&json!({"schemaVersion": 2, "manifests": [entry]}))?;

    let file = File::create(output).with_context(|| format!("write {}", output.display()))?;
    let mut archive = Builder::new(file);
    append(&mut archive, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    for blob in [&layer, &config, &manifest] {
        append(&mut archive, &format!("blobs/sha256/{}", checksums::of_bytes(blob)), blob)?;
    }
    append(&mut archive, "index.json", &index)?;
    archive.into_inner()?.sync_all().context("write image")
}

/// Compiles a Rust program without dependencies, links it statically and packs it as the image `reference`,
/// which holds nothing else and runs it. `aside` is a folder for files on the way.
pub fn pack_program(name: &str, source: &str, reference: &str, aside: &Path, output: &Path) -> Result<()> {
    let (file, root) = (aside.join(format!("{name}.rs")), aside.join("root"));
    fs::create_dir_all(&root)?;
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
    pack(&root, reference, &json!({"Entrypoint": [format!("/{name}")]}), output)
}

fn append(archive: &mut Builder<File>, path: &str, bytes: &[u8]) -> Result<()> {
    let mut header = Header::new_ustar();
    header.set_size(u64::try_from(bytes.len())?);
    header.set_mode(0o644);
    Ok(archive.append_data(&mut header, path, bytes)?)
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", checksums::of_bytes(bytes))
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": digest(bytes), "size": bytes.len()})
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn an_archive_holds_what_its_index_names() {
        let folder = std::env::temp_dir().join(format!("kubevirt-rs-image-{}", std::process::id()));
        let root = folder.join("root");
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("pause"), "program").unwrap();
        let output = folder.join("image.tar");
        pack(&root, "localhost/pause:1", &json!({"Entrypoint": ["/pause"]}), &output).unwrap();

        let mut files = std::collections::BTreeMap::new();
        for entry in tar::Archive::new(File::open(&output).unwrap()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            files.insert(entry.path().unwrap().to_string_lossy().into_owned(), bytes);
        }
        let blob = |descriptor: &Value| {
            let name = descriptor["digest"].as_str().unwrap().replace("sha256:", "blobs/sha256/");
            let bytes = &files[&name];
            assert_eq!(descriptor["size"], bytes.len());
            bytes.clone()
        };
        let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], "localhost/pause:1");
        let manifest: Value = serde_json::from_slice(&blob(&index["manifests"][0])).unwrap();
        let config: Value = serde_json::from_slice(&blob(&manifest["config"])).unwrap();
        assert_eq!(config["config"]["Entrypoint"][0], "/pause");
        let layer = blob(&manifest["layers"][0]);
        assert_eq!(config["rootfs"]["diff_ids"][0], digest(&layer));
        fs::remove_dir_all(folder).unwrap();
    }
}
