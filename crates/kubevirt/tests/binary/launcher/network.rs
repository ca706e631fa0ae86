//! The bindings of a network, seen from inside the guest and from the world beyond its pod.

use kubevirt_network::{Binding, InterfaceRequest, Masquerade, NetNs, Wiring, phase1};
use serde_json::{Value, json};
use test_guest::Console;
use tokio::process::Child;

use super::pod::{Pod, sleeper, vmi};

/// The world beyond the pod: another network namespace, at the other end of the pod's cable.
struct World {
    keeper: Child,
}

impl World {
    fn connect(pod: &Pod) -> Self {
        let world = Self { keeper: sleeper() };
        let (inside, outside) = (pod.network(), world.keeper.id().unwrap());
        run(&format!("ip link add eth0 netns {inside} type veth peer name eth0 netns {outside}"));
        within(inside, "ip addr add 10.9.0.2/24 dev eth0; ip link set lo up; ip link set eth0 up");
        within(inside, "ip route add default via 10.9.0.1");
        within(outside, "ip addr add 10.9.0.1/24 dev eth0; ip link set eth0 up");
        world
    }

    /// Gives both ends an address of the other family too.
    fn with_ipv6(self, pod: &Pod) -> Self {
        let (inside, outside) = (pod.network(), self.keeper.id().unwrap());
        within(outside, "ip addr add fd99::1/64 dev eth0 nodad");
        within(inside, "ip addr add fd99::2/64 dev eth0 nodad; ip -6 route add default via fd99::1");
        self
    }

    /// Listens in the world, and says what the first caller sent.
    fn listen(&self, port: u16) -> std::process::Child {
        let pid = self.keeper.id().unwrap();
        let mut command = std::process::Command::new("nsenter");
        command.args([&format!("--net=/proc/{pid}/ns/net"), "busybox", "nc", "-l", "-p", &port.to_string()]);
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).spawn().unwrap()
    }

    /// What a server at an address sends.
    fn fetch(&self, address: &str, port: u16) -> String {
        within(self.keeper.id().unwrap(), &format!("busybox nc -w 20 {address} {port} </dev/null"))
    }
}

fn run(script: &str) -> String {
    let done = std::process::Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

fn within(pid: u32, script: &str) -> String {
    run(&format!("nsenter --net=/proc/{pid}/ns/net sh -ec '{script}'"))
}

fn request(network: &str, link: &str, place: u8, binding: Binding, queues: u32) -> InterfaceRequest {
    InterfaceRequest {
        network: network.into(),
        pod_interfaces: vec![link.into()],
        primary: place == 0,
        place,
        queues,
        ..InterfaceRequest::on_pod_network(binding)
    }
}

/// What the handler does before it asks for the machine.
async fn wire(pod: &mut Pod, requests: &[InterfaceRequest]) {
    let namespace = NetNs::of_process(pod.network()).unwrap();
    let known: Vec<Wiring> = serde_json::from_slice(&pod.options.network_json).unwrap_or_default();
    let wirings = phase1::configure(&namespace, requests, &known).await.unwrap();
    pod.options.network_json = serde_json::to_vec(&wirings).unwrap();
}

/// What the guest says of its address.
const OWN_ADDRESS: &str = "ip -4 -o addr show eth0 | awk '{ print $4 }'";

fn masquerade() -> Binding {
    Binding::Masquerade(Masquerade::default())
}

fn wish(binding: Value, cores: u32) -> Value {
    let mut interface = json!({"name": "default"});
    json_patch::merge(&mut interface, &binding);
    vmi(json!({"spec": {
        "domain": {"cpu": {"cores": cores}, "devices": {
            "interfaces": [interface], "networkInterfaceMultiqueue": cores > 1}},
        "networks": [{"name": "default", "pod": {}}],
    }}))
}

/// Carries a word from the guest to the world, and another back.
async fn talk(console: &mut Console, world: &World, world_address: &str, pod_address: &str) {
    let mut listener = world.listen(4000);
    let send = format!("echo from the guest | nc -w 20 {world_address} 4000 && echo sent");
    console.until(&send, "sent").await.unwrap();
    let mut heard = String::new();
    std::io::Read::read_to_string(&mut listener.stdout.take().unwrap(), &mut heard).unwrap();
    listener.wait().unwrap();
    assert_eq!(heard.trim(), "from the guest");
    console.send_line("while true; do echo to the world | nc -l -p 80; done &").await.unwrap();
    console.until("netstat -ltn | grep -c :80", "1").await.unwrap();
    assert_eq!(world.fetch(pod_address, 80), "to the world");
}

#[tokio::test]
async fn a_guest_talks_through_masquerade_with_many_queues() {
    let mut pod = Pod::start().await;
    pod.container_disk(0);
    let world = World::connect(&pod);
    wire(&mut pod, &[request("default", "eth0", 0, masquerade(), 2)]).await;
    let vmi = wish(json!({"masquerade": {}}), 2);
    let mut console = pod.boot(&vmi).await;
    console.until(OWN_ADDRESS, "10.0.2.2/24").await.unwrap();
    talk(&mut console, &world, "10.9.0.1", "10.9.0.2").await;
    let queues = pod.domain().await.unwrap().spec.unwrap().interfaces[0].queues;
    assert_eq!(queues, 2);
}

#[tokio::test]
async fn a_guest_gets_both_kinds_of_addresses() {
    let mut pod = Pod::start().await;
    pod.container_disk(0);
    let world = World::connect(&pod).with_ipv6(&pod);
    wire(&mut pod, &[request("default", "eth0", 0, masquerade(), 1)]).await;
    let mut console = pod.boot(&wish(json!({"masquerade": {}}), 1)).await;
    console.until(OWN_ADDRESS, "10.0.2.2/24").await.unwrap();
    let six = "ip -6 -o addr show eth0 scope global | awk '{ sub(\"/.*\", \"\", $4); print $4 }'";
    console.until(six, "fd10:0:2::2").await.unwrap();
    // DHCP has no word for a router here, and nobody in the pod advertises one.
    console.run("ip -6 route replace fd10:0:2::1 dev eth0").await.unwrap();
    console.run("ip -6 route replace default via fd10:0:2::1 dev eth0").await.unwrap();
    talk(&mut console, &world, "fd99::1", "fd99::2").await;
}

#[tokio::test]
async fn a_guest_on_a_bridge_has_the_address_of_its_pod() {
    let mut pod = Pod::start().await;
    pod.container_disk(0);
    let world = World::connect(&pod);
    wire(&mut pod, &[request("default", "eth0", 0, Binding::Bridge, 1)]).await;
    let mut console = pod.boot(&wish(json!({"bridge": {}}), 1)).await;
    console.until(OWN_ADDRESS, "10.9.0.2/24").await.unwrap();
    talk(&mut console, &world, "10.9.0.1", "10.9.0.2").await;
}

#[tokio::test]
async fn a_network_card_comes_and_goes_under_a_running_guest() {
    let mut pod = Pod::start().await;
    pod.container_disk(0);
    let _world = World::connect(&pod);
    let first = request("default", "eth0", 0, masquerade(), 1);
    wire(&mut pod, std::slice::from_ref(&first)).await;
    let before = wish(json!({"masquerade": {}}), 1);
    let mut console = pod.boot(&before).await;
    let cards = "ls /sys/class/net | grep -c eth";
    assert_eq!(console.run(cards).await.unwrap(), "1");

    within(
        pod.network(),
        "ip link add net1 type veth peer name beyond; ip link set net1 up; ip link set beyond up",
    );
    wire(&mut pod, &[first, request("second", "net1", 1, Binding::Bridge, 1)]).await;
    let both = |state: &str| {
        let mut all = before.clone();
        let card = json!({"name": "second", "bridge": {}, "state": state, "macAddress": "02:00:00:00:00:77"});
        all["spec"]["domain"]["devices"]["interfaces"].as_array_mut().unwrap().push(card);
        all["spec"]["networks"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": "second", "multus": {"networkName": "n"}}));
        all
    };
    pod.sync(&both("")).await.unwrap();
    console.until("cat /sys/class/net/eth1/address 2>/dev/null", "02:00:00:00:00:77").await.unwrap();
    console.until("ip link set eth1 up; cat /sys/class/net/eth1/carrier 2>/dev/null", "1").await.unwrap();
    pod.sync(&both("down")).await.unwrap();
    console.until("cat /sys/class/net/eth1/carrier 2>/dev/null", "0").await.unwrap();
    pod.sync(&both("absent")).await.unwrap();
    console.until(cards, "1").await.unwrap();
}
