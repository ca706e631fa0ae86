//! Programs beside QEMU: the emulator of a TPM, and the server of a shared folder.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Instant;

use serde_json::{Value, json};
use test_guest::Console;

use super::handler::PATIENCE;
use super::pod::{Pod, Settings, USER, vmi};

async fn start() -> Pod {
    let pod = Pod::with(Settings { all_drivers: true, ..Settings::default() }).await;
    pod.kernel_boot();
    pod
}

fn wish(devices: &Value, volumes: &Value) -> Value {
    let mut vmi = vmi(json!({"spec": {
        "domain": {"memory": {"guest": "384Mi"}, "firmware": {
            "uuid": "5d307ca9-b3ef-428c-8861-06e72d69f223",
            "kernelBoot": {"kernelArgs": test_guest::COMMAND_LINE, "container": {
                "image": "guest", "kernelPath": "/boot/vmlinuz", "initrdPath": "/boot/initrd"}},
        }},
    }}));
    vmi["spec"]["domain"]["devices"] = devices.clone();
    vmi["spec"]["volumes"] = volumes.clone();
    vmi
}

/// Sends a command to the guest's TPM and returns its answer; both in hexadecimal.
async fn tpm(console: &mut Console, command: &str) -> String {
    let bytes: String = command
        .replace(' ', "")
        .as_bytes()
        .chunks(2)
        .map(|byte| format!("\\x{}", String::from_utf8_lossy(byte)))
        .collect();
    let script = format!(
        "exec 3<>/dev/tpm0; printf '{bytes}' >&3; dd bs=4096 count=1 <&3 2>/dev/null | hexdump -ve '1/1 \"%02x\"'"
    );
    console.run(&script).await.unwrap()
}

/// The password of the owner, which is empty.
const OWNER: &str = "00000009 40000009 0000 00 0000";
/// A place of eight bytes that the owner may make, write and read.
const DEFINE: &str = "8002 0000002d 0000012a 40000001";
const PLACE: &str = "0000 000e 01500000 000b 02060006 0000 0008";
const WRITE: &str = "8002 00000028 00000137 40000001 01500000";
const READ: &str = "8002 00000023 0000014e 40000001 01500000";
/// `stays`, with its length.
const WORD: &str = "00057374617973";

#[tokio::test]
async fn what_a_tpm_knows_outlives_its_guest() {
    let vmi = wish(&json!({"disks": [], "tpm": {"persistent": true}}), &json!([]));
    let mut before = start().await;
    let mut console = before.boot(&vmi).await;
    assert_eq!(console.run("cat /sys/class/tpm/tpm0/tpm_version_major").await.unwrap(), "2");
    for command in [format!("{DEFINE} {OWNER} {PLACE}"), format!("{WRITE} {OWNER} {WORD} 0000")] {
        let answer = tpm(&mut console, &command).await;
        assert_eq!(&answer[12..20], "00000000", "{command}: {answer}");
    }
    console.send_line("poweroff").await.unwrap();
    assert_eq!(before.exit_code().await, 0);

    // The state lies on a claim, which the next pod has too.
    let after = start().await;
    let state = "libvirt/qemu/swtpm";
    std::fs::create_dir_all(after.private().join("libvirt/qemu")).unwrap();
    let copy = ["-a".into(), before.private().join(state), after.private().join(state)];
    assert!(Command::new("cp").args(copy).status().unwrap().success());
    drop(before);
    after.own(&after.private().join(state));
    let mut console = after.boot(&vmi).await;
    let answer = tpm(&mut console, &format!("{READ} {OWNER} 0005 0000")).await;
    assert!(answer.contains(WORD), "{answer}");
}

/// A server of a folder, as the container of its own in the pod would run it.
struct FileServer(Child);

impl FileServer {
    fn start(socket: &Path, folder: &Path) -> Self {
        let socket_path = format!("--socket-path={}", socket.display());
        // The one that replaced QEMU's own takes other words.
        let programs = ["/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd"].map(Path::new);
        let program = programs.into_iter().find(|program| program.exists()).expect("there is a virtiofsd");
        let mut command = Command::new(program);
        command.arg(socket_path);
        if program.starts_with("/usr/libexec") {
            command.arg(format!("--shared-dir={}", folder.display())).arg("--sandbox=none");
        } else {
            command.args(["-o", &format!("source={}", folder.display()), "-o", "sandbox=chroot"]);
        }
        let mut server = Self(command.spawn().unwrap());
        let began = Instant::now();
        while !socket.exists() {
            assert!(server.0.try_wait().unwrap().is_none(), "the file server ended");
            assert!(began.elapsed() < PATIENCE, "the file server does not listen");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        std::os::unix::fs::chown(socket, Some(USER), Some(USER)).unwrap();
        server
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_guest_shares_a_folder_and_has_a_tpm_of_its_own() {
    let pod = start().await;
    let folder: PathBuf = pod.share().join("config");
    pod.write(&folder.join("greeting"), b"hello");
    let sockets = pod.share().join("virtiofs-containers");
    std::fs::create_dir_all(&sockets).unwrap();
    let _server = FileServer::start(&sockets.join("config.sock"), &folder);
    let devices = json!({"disks": [], "tpm": {}, "filesystems": [{"name": "config", "virtiofs": {}}]});
    let volumes = json!([{"name": "config", "configMap": {"name": "config"}}]);
    let mut console = pod.boot(&wish(&devices, &volumes)).await;
    console.run("mkdir -p /tmp/m && mount -t virtiofs config /tmp/m").await.unwrap();
    assert_eq!(console.run("cat /tmp/m/greeting").await.unwrap(), "hello");
    console.run("echo from the guest >/tmp/m/answer && umount /tmp/m").await.unwrap();
    assert_eq!(std::fs::read(folder.join("answer")).unwrap(), b"from the guest\n");
    assert_eq!(console.run("cat /sys/class/tpm/tpm0/tpm_version_major").await.unwrap(), "2");
}
