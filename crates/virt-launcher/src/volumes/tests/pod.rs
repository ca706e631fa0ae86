//! A folder that looks like the file system of a launcher's pod.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Layout;
use serde_json::{Value, json};

use crate::volumes::{Prepared, Purpose, Request, VolumeError, prepare};

pub const MIB: u64 = 1 << 20;

pub struct Pod {
    root: PathBuf,
    pub layout: Layout,
}

impl Pod {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("volumes-{}-{number}", std::process::id()));
        fs::create_dir(&root).unwrap();
        let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
        let layout = Layout {
            private: path("private"),
            ephemeral: path("ephemeral"),
            container_disks: path("container-disks"),
            image_volumes: path("image-volume"),
            kernel_image: path("kernel-boot"),
            hotplug_disks: path("hotplug"),
            devices: path("dev"),
            service_account: path("service-account"),
            ..Layout::default()
        };
        Self { root, layout }
    }

    /// A file with its folders.
    pub fn file(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// A folder as a kubelet mounts ConfigMaps and Secrets: links to the current state.
    pub fn mount(&self, folder: impl AsRef<Path>, files: &[(&str, &[u8])]) -> PathBuf {
        let folder = self.root.join(folder);
        let state = folder.join("..2030_01_01_00_00_00.1");
        fs::create_dir_all(&state).unwrap();
        symlink(state.file_name().unwrap(), folder.join("..data")).unwrap();
        for (name, bytes) in files {
            fs::create_dir_all(state.join(name).parent().unwrap()).unwrap();
            fs::write(state.join(name), bytes).unwrap();
            let top = name.split('/').next().unwrap();
            let _ = symlink(Path::new("..data").join(top), folder.join(top));
        }
        folder
    }

    pub fn prepare(&self, vmi: &VirtualMachineInstance) -> Result<Prepared, Vec<VolumeError>> {
        prepare(&Request::start(vmi, &self.layout))
    }

    pub fn prepare_for(
        &self,
        vmi: &VirtualMachineInstance,
        purpose: Purpose,
    ) -> Result<Prepared, Vec<VolumeError>> {
        prepare(&Request { purpose, ..Request::start(vmi, &self.layout) })
    }

    /// The only thing that is wrong.
    pub fn problem(&self, vmi: &VirtualMachineInstance) -> String {
        let errors = self.prepare(vmi).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        errors[0].to_string()
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// A VMI with these volumes, each of them a disk.
pub fn vmi(volumes: Value) -> VirtualMachineInstance {
    let names = volumes.as_array().unwrap().iter().map(|volume| json!({"name": volume["name"], "disk": {}}));
    let disks: Vec<_> = names.collect();
    serde_json::from_value(json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"},
        "spec": {"domain": {"devices": {"disks": disks}}, "volumes": volumes},
    }))
    .unwrap()
}

/// The same with a status of volumes.
pub fn with_status(mut vmi: VirtualMachineInstance, volumes: Value) -> VirtualMachineInstance {
    vmi.status = serde_json::from_value(json!({"volumeStatus": volumes})).unwrap();
    vmi
}

/// What a program says; it must succeed.
pub fn run<A: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = A>) -> String {
    let output = Command::new(program)
        .args(args)
        .output()
        .unwrap_or_else(|error| panic!("{program} is needed for this test: {error}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What QEMU's own program says about an image, after it has checked it.
pub fn qemu_info(path: &Path) -> Value {
    let path = path.to_str().unwrap();
    run("qemu-img", ["check", "-q", "-f", "qcow2", path]);
    serde_json::from_str(&run("qemu-img", ["info", "-f", "qcow2", "--output", "json", path])).unwrap()
}

/// Files of an ISO image, as Unix sees them or as Windows does.
pub fn iso(path: impl AsRef<Path>, windows: bool) -> BTreeMap<String, String> {
    let path = path.as_ref().to_str().unwrap();
    let options = if windows { "iso9660:!rockridge" } else { "iso9660:!joliet" };
    let list = run("bsdtar", ["--options", options, "-tvf", path]);
    let names = list.lines().filter(|line| !line.starts_with('d'));
    let names = names.map(|line| line.split_whitespace().last().unwrap());
    names.map(|name| (name.to_owned(), run("bsdtar", ["--options", options, "-xOf", path, name]))).collect()
}

/// Label of an ISO image.
pub fn label(path: impl AsRef<Path>) -> String {
    let image = fs::read(path).unwrap();
    String::from_utf8_lossy(&image[0x8028..0x8048]).trim_end().to_owned()
}
