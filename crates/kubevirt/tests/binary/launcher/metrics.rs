//! Metrics of the host, through a disk and through a port.

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::pod::{Pod, vmi};

#[tokio::test]
async fn a_guest_reads_metrics_of_its_host() {
    let pod = Pod::start().await;
    pod.kernel_boot();
    let wish = json!({"spec": {
        "domain": {
            "firmware": {"kernelBoot": {"kernelArgs": test_guest::COMMAND_LINE, "container": {
                "image": "guest", "kernelPath": "/boot/vmlinuz", "initrdPath": "/boot/initrd"}}},
            "devices": {
                "downwardMetrics": {},
                "disks": [{"name": "metrics", "disk": {"bus": "virtio"}}],
            },
        },
        "volumes": [{"name": "metrics", "downwardMetrics": {}}],
    }});
    let mut console = pod.boot(&vmi(wish)).await;
    let read = |skip: u32, count: u32| {
        format!("echo 3 >/proc/sys/vm/drop_caches; dd if=/dev/vda bs=1 skip={skip} count={count} 2>/dev/null")
    };
    assert_eq!(console.run(&read(0, 4)).await.unwrap(), "mvbd");
    assert_eq!(console.run(&read(16, 19)).await.unwrap(), "<metrics></metrics>");
    assert_eq!(console.run("cat /sys/block/vda/ro").await.unwrap(), "1");
    // What the handler writes later is there when the guest looks.
    let disk = pod.private().join("downwardapi-disks/vhostmd0");
    let file = std::fs::OpenOptions::new().write(true).open(disk).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"<metrics>1</metrics>", 16).unwrap();
    file.sync_all().unwrap();
    console.until(&read(16, 20), "<metrics>1</metrics>").await.unwrap();

    let socket = pod.private().join("downwardmetrics-channel/downwardmetrics.sock");
    let (from_guest, mut to_guest) = UnixStream::connect(socket).await.unwrap().into_split();
    let handler = tokio::spawn(async move {
        let mut lines = BufReader::new(from_guest).lines();
        let asked = lines.next_line().await.unwrap().unwrap();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "");
        to_guest.write_all(b"<metrics>2</metrics>\n\n").await.unwrap();
        asked
    });
    let ask =
        "exec 3<>/dev/virtio-ports/org.github.vhostmd.1; printf 'GET /metrics/XML\\n\\n' >&3; head -n 1 <&3";
    assert_eq!(console.run(ask).await.unwrap(), "<metrics>2</metrics>");
    assert_eq!(handler.await.unwrap(), "GET /metrics/XML");
}
