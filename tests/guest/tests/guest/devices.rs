//! What the guest sees of its machine.

use test_guest::Flavour;

use crate::vm::Plan;

#[tokio::test]
async fn the_agent_answers_and_devices_may_come_later() {
    let plan = Plan::new(Flavour::Cloud).await.kernel("");
    let mut vm = plan
        .with("-smp 1,sockets=2,maxcpus=2 -device pcie-root-port,id=port1,chassis=1 -device pcie-root-port,id=port2,chassis=2")
        .with("-device virtio-serial-pci -chardev socket,id=agent,path={}/agent,server=on,wait=off")
        .with("-device virtserialport,chardev=agent,name=org.qemu.guest_agent.0")
        .with("-device virtio-rng-pci -device virtio-balloon-pci -netdev user,id=lan")
        .drive("more", &vec![0; 1 << 20])
        .start()
        .await;
    let answer = vm.agent(r#"{"execute":"guest-get-osinfo"}"#).await;
    assert!(answer.contains(r#""id": "testguest""#), "{answer}");
    vm.login().await;
    let drivers = "cd /sys/bus/virtio/drivers; ls -d virtio_rng*/virtio* virtio_balloon/virtio* | wc -l";
    assert_eq!(vm.run(drivers).await, "2");
    vm.monitor("device_add virtio-blk-pci,drive=more,bus=port1,serial=LATE").await;
    vm.console.until("cat /sys/block/vda/size; ls /dev/disk/by-id", "2048\nvirtio-LATE").await.unwrap();
    vm.monitor("device_add virtio-net-pci,netdev=lan,bus=port2").await;
    vm.console.until("ip -4 -o address show eth0 | grep -o 10.0.2.15", "10.0.2.15").await.unwrap();
    assert_eq!(
        vm.run("grep -o 10.0.2.3 /etc/resolv.conf; ip route | grep -c 'default via 10.0.2.2'").await,
        "10.0.2.3\n1"
    );
    vm.monitor("device_add max-x86_64-cpu,id=cpu1,socket-id=1,core-id=0,thread-id=0").await;
    vm.console.until("nproc", "2").await.unwrap();
}

#[tokio::test]
async fn the_guest_takes_logins_over_ssh() {
    let mut vm = Plan::new(Flavour::Cloud).await.kernel("").with("-nic user,model=virtio").start().await;
    vm.login().await;
    // By key, from itself to itself: the way there and back is all that counts.
    let keys = "mkdir -p -m 700 /root/.ssh && dropbearkey -t ed25519 -f /root/.ssh/id_dropbear 2>/dev/null | \
                grep ^ssh- >/root/.ssh/authorized_keys && chmod 600 /root/.ssh/authorized_keys";
    vm.run(keys).await;
    let login = "ssh -y root@127.0.0.1 hostname 2>/dev/null";
    assert_eq!(vm.run(login).await, "guest");
}

#[tokio::test]
async fn the_full_flavour_knows_older_devices() {
    let plan = Plan::new(Flavour::Full).await.disk();
    let mut vm = plan
        .drive(
            "seed",
            &test_guest::seed("cidata", &[("user-data", b"#cloud-config\nhostname: by-usb\n")]).unwrap(),
        )
        .with("-device ide-hd,drive=boot,serial=OLD -device qemu-xhci -device usb-storage,drive=seed")
        .with("-device usb-tablet -nic user,model=e1000e -nic user,model=e1000 -nic user,model=rtl8139")
        .with("-device i6300esb -vga std -audiodev none,id=mute -device intel-hda -device hda-duplex,audiodev=mute")
        .start()
        .await;
    vm.login().await;
    vm.console.until("hostname", "by-usb").await.unwrap();
    assert_eq!(vm.run("mount | grep -c '/dev/sd.2 on /data type ext2'").await, "1");
    vm.console.until("ip -4 -o address | grep -c 10.0.2.15", "3").await.unwrap();
    vm.console.until("grep -c 'QEMU USB Tablet' /proc/bus/input/devices", "1").await.unwrap();
    let devices =
        "ls -d /dev/watchdog0 /dev/dri/card0 /dev/snd/controlC0 /sys/block/sd*/device/vendor | wc -l";
    vm.console.until(devices, "5").await.unwrap();
}
