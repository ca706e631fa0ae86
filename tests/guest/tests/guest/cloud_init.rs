//! What cloud-init's documents do.

use test_guest::{Flavour, seed};

use crate::vm::{Plan, Vm};

const USER_DATA: &str = r##"#cloud-config
hostname: from-cloud   # a comment
password: secret
chpasswd:
  expire: false
  list: |
    root:other root
ssh_pwauth: True
ssh_authorized_keys:
- ssh-ed25519 AAAA one
users:
  - default
  - name: kim
    plain_text_passwd: 'kim''s'
    ssh_authorized_keys: ["ssh-ed25519 BBBB two"]
write_files:
- path: /etc/deep/file
  permissions: '0600'
  content: |
    one "two"
      $three \four
- path: /etc/encoded
  encoding: b64
  content: aGVsbG8K
bootcmd:
- echo early >/tmp/boot
runcmd:
- cat /tmp/boot >/tmp/order
- [ sh, -c, "echo 'a, b' \"$0\" >>/tmp/order", it's ]
- |
  for word in x y; do
    echo $word >>/tmp/order
  done
"##;

async fn boot(label: &str, files: &[(&str, &[u8])], device: &str) -> Vm {
    let plan = Plan::new(Flavour::Cloud).await.kernel("").drive("seed", &seed(label, files).unwrap());
    plan.with(device).start().await
}

#[tokio::test]
async fn no_cloud_is_applied() {
    let network = "version: 2\nethernets:\n  lan:\n    match: {macaddress: '52:54:00:00:00:02'}\n    \
                   addresses: [192.0.2.9/24]\n    routes:\n    - to: 198.51.100.0/24\n      via: 192.0.2.1\n    \
                   nameservers: {addresses: [192.0.2.53]}\n    mtu: 1400\n";
    let files: [(&str, &[u8]); 3] = [
        ("user-data", USER_DATA.as_bytes()),
        ("meta-data", b"instance-id: i-1\nlocal-hostname: from-meta\n"),
        ("network-config", network.as_bytes()),
    ];
    let devices = "-device virtio-blk-pci,drive=seed -nic user,model=virtio,mac=52:54:00:00:00:01 \
                   -nic user,model=virtio,mac=52:54:00:00:00:02,restrict=on";
    let mut vm = boot("cidata", &files, devices).await;
    vm.console.expect("from-cloud login: ").await.unwrap();
    vm.console.login("root", "other root").await.unwrap();
    vm.console.until("tail -n 1 /var/log/cloud-init.log | grep -o 'done$'", "done").await.unwrap();
    assert_eq!(vm.run("cat /tmp/order").await, "early\na, b it's\nx\ny");
    assert_eq!(
        vm.run("stat -c %a /etc/deep/file; cat /etc/deep/file").await,
        "600\none \"two\"\n  $three \\four"
    );
    assert_eq!(vm.run("cat /etc/encoded /run/cloud-init/instance-id").await, "hello\ni-1");
    let keys = "cat /home/guest/.ssh/authorized_keys /home/kim/.ssh/authorized_keys";
    assert_eq!(vm.run(keys).await, "ssh-ed25519 AAAA one\nssh-ed25519 BBBB two");
    vm.console.until("ip -4 -o address show eth0 | grep -o '10.0.2.15/24'", "10.0.2.15/24").await.unwrap();
    let second = "ip -4 -o address show eth1 | grep -o 192.0.2.9/24; cat /sys/class/net/eth1/mtu; \
                  ip route get 198.51.100.7 | grep -o 'via 192.0.2.1 dev eth1'; grep -c 192.0.2.53 /etc/resolv.conf";
    assert_eq!(vm.run(second).await, "192.0.2.9/24\n1400\nvia 192.0.2.1 dev eth1\n1");
    vm.console.send_line("exit").await.unwrap();
    vm.console.expect("login: ").await.unwrap();
    vm.console.login("kim", "kim's").await.unwrap();
    vm.console.send_line("exit").await.unwrap();
    vm.console.expect("login: ").await.unwrap();
    vm.console.login("guest", "secret").await.unwrap();
}

#[tokio::test]
async fn a_config_drive_with_a_script_is_applied() {
    let files: [(&str, &[u8]); 2] = [
        ("openstack/latest/user_data", b"#!/bin/sh\nhostname >/tmp/script\n"),
        (
            "openstack/latest/meta_data.json",
            br#"{"uuid": "i-2", "hostname": "drive.example", "public_keys": {"k": "ssh-ed25519 CCCC"}}"#,
        ),
    ];
    let device = "-device virtio-scsi-pci -device scsi-hd,drive=seed";
    let mut vm = boot("config-2", &files, device).await;
    vm.console.expect("cloud-init: done").await.unwrap();
    vm.login().await;
    let script = "cat /tmp/script /run/cloud-init/instance-id /home/guest/.ssh/authorized_keys";
    assert_eq!(vm.run(script).await, "drive\ni-2\nssh-ed25519 CCCC");
}

#[tokio::test]
async fn broken_documents_are_only_logged() {
    let files: [(&str, &[u8]); 3] = [
        ("user-data", b"#cloud-config\npassword: [oh, no\n  - what: {\n"),
        ("meta-data", b"local-hostname: still-good\n"),
        ("network-config", b"::: : :\n\t-"),
    ];
    let mut vm = boot("CIDATA", &files, "-device virtio-blk-pci,drive=seed").await;
    vm.console.expect("still-good login: ").await.unwrap();
    vm.login().await;
    let log = vm.run("cat /var/log/cloud-init.log").await;
    assert!(log.contains("user-data is not understood: line"), "{log}");
}
