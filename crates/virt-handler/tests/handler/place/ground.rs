//! A node with pods. Each test has mount and PID namespaces of its own, so that nothing of it outlives it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_virt_handler::prepare::{Folders, Place};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use serde_json::Value;

/// Far more than anything here takes, as tests share machines.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Says that a test runs in namespaces of its own, and how its control group is called.
const ALONE: &str = "KUBEVIRT_TEST_ALONE";
pub const UID: &str = "0d7b9b4e-9c8a-4d5c-8c35-1a2b3c4d5e6f";
pub const GROUPS: &str = "/sys/fs/cgroup/devices";

/// Runs a test again in namespaces of its own, or the test itself if it is there already.
pub fn alone<F: Future<Output = ()>>(name: &str, test: impl FnOnce() -> F) {
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        return runtime.unwrap().block_on(test());
    }
    LazyLock::force(&PROGRAM);
    let group = format!("kubevirt-test-{}-{}", std::process::id(), name.replace("::", "-"));
    let status = Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "--propagation", "private"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "--test-threads=1", name])
        .env(ALONE, &group)
        .status();
    // A group is empty only once the last of its processes is gone.
    let (path, end) = (Path::new(GROUPS).join(group), Instant::now() + PATIENCE);
    while path.exists() && fs::remove_dir(&path).is_err() && Instant::now() < end {
        sleep(Duration::from_millis(20));
    }
    assert!(status.unwrap().success(), "{name}");
}

/// The real program, built once.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap();
    if std::env::var_os(ALONE).is_none() {
        let target = folder.parent().unwrap();
        let profile = folder.file_name().unwrap().to_str().unwrap();
        let profile = if profile == "debug" { "dev" } else { profile };
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "container-disk", "--profile", profile, "--target-dir"]);
        assert!(cargo.arg(target).status().unwrap().success());
    }
    folder.join("container-disk")
});

pub struct Node {
    pub folders: Folders,
    folder: PathBuf,
    processes: Vec<Child>,
    containers: usize,
}

impl Node {
    pub fn new() -> Self {
        let folder = std::env::temp_dir().join("node");
        // Nobody outside of this mount namespace sees it.
        mount("none", "/tmp", "tmpfs", MountFlags::empty(), None).unwrap();
        fs::create_dir_all(&folder).unwrap();
        let shared = folder.join("shared");
        fs::create_dir_all(&shared).unwrap();
        mount("none", &shared, "tmpfs", MountFlags::empty(), None).unwrap();
        mount_change(&shared, MountPropagationFlags::SHARED).unwrap();
        let folders = Folders::new(shared.join("pods"), folder.join("private"));
        Self { folders, folder, processes: Vec::new(), containers: 0 }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// A pod's empty folder, as a kubelet makes it.
    pub fn empty_dir(&self, pod: &str, volume: &str) -> PathBuf {
        let path = self.folders.pods.join(pod).join("volumes/kubernetes.io~empty-dir").join(volume);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
        path
    }

    /// The root folder of the next container, with files in it.
    pub fn root(&mut self, files: &[(&str, &str)]) -> PathBuf {
        let root = self.folder.join(format!("container-{}", self.containers));
        self.containers += 1;
        fs::create_dir_all(root.join("usr")).unwrap();
        for name in ["bin", "lib", "lib64", "sbin"] {
            symlink(Path::new("usr").join(name), root.join(name)).unwrap();
        }
        fs::copy(&*PROGRAM, root.join("container-disk")).unwrap();
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    /// Starts a container that listens on a socket in one of its folders. `folders` are pairs of one of the node and
    /// one of the container.
    pub fn start(&mut self, root: &Path, socket: &str, folders: &[(PathBuf, &str)]) {
        let mut script = format!("mount --bind /usr {}/usr\n", root.display());
        if let (Ok(group), true) = (std::env::var(ALONE), Path::new(GROUPS).join("tasks").exists()) {
            script += &format!("mkdir -p {GROUPS}/{group}; echo $$ > {GROUPS}/{group}/tasks || true\n");
        }
        for (from, to) in folders {
            fs::create_dir_all(root.join(to)).unwrap();
            script += &format!("mount --bind {} {}/{to}\n", from.display(), root.display());
        }
        script += &format!("exec chroot {} /container-disk --copy-path /{socket}\n", root.display());
        let child = Command::new("unshare")
            .args(["--mount", "--net", "--propagation", "slave", "sh", "-ec", &script])
            .spawn();
        self.processes.push(child.unwrap());
    }

    /// The launcher of the pod. More folders can be mounted into it.
    pub fn launcher(&mut self, root: &Path, more: &[(PathBuf, &str)]) -> Place {
        let sockets = self.empty_dir(UID, "sockets");
        let mut folders = vec![
            (sockets.clone(), "sockets"),
            (self.empty_dir(UID, "container-disks"), "var/run/kubevirt/container-disks"),
            (self.empty_dir(UID, "hotplug-disks"), "var/run/kubevirt/hotplug-disks"),
        ];
        folders.extend_from_slice(more);
        fs::create_dir_all(root.join("dev")).unwrap();
        self.start(root, "sockets/launcher", &folders);
        self.find(&sockets.join("launcher.sock"))
    }

    /// Finds the pod again, as a handler that restarted does.
    pub fn find(&self, socket: &Path) -> Place {
        until(|| Place::find(UID, socket, &self.folders).ok())
    }

    pub fn found_again(&self) -> Place {
        self.find(&self.empty_dir(UID, "sockets").join("launcher.sock"))
    }

    /// The container of an image, which shares a folder with the launcher.
    pub fn image(&mut self, socket: &str, files: &[(&str, &str)]) {
        let root = self.root(files);
        let folder = self.empty_dir(UID, "container-disks");
        self.start(&root, &format!("shared/{socket}"), &[(folder, "shared")]);
    }

    /// All mounts below the pods' folder.
    pub fn mounts(&self) -> Vec<String> {
        let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let below = format!("{}/", self.folders.pods.display());
        let mut found: Vec<_> = all
            .lines()
            .filter_map(|line| line.split(' ').nth(4))
            .filter_map(|point| point.strip_prefix(&below).map(str::to_owned))
            .collect();
        found.sort();
        found
    }
}

/// A file as a pod's process sees it.
pub fn seen(place: &Place, path: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/root/{path}", place.launcher_id()))
}

pub fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "it did not come");
        sleep(Duration::from_millis(20));
    }
}

pub fn vmi(spec: Value, status: Value) -> VirtualMachineInstance {
    let metadata = serde_json::json!({"name": "web", "namespace": "default", "uid": "11111111-2222"});
    serde_json::from_value(serde_json::json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
}
