//! The bindings of a network, seen from inside the guest and from the world beyond its pod.

use kubevirt_network::{Binding, InterfaceRequest, LAUNCHER_USER, Masquerade, NetNs, phase1};
use serde_json::{Value, json};
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

async fn wire(pod: &mut Pod, binding: Binding, queues: u32) {
    let request = InterfaceRequest {
        network: "default".into(),
        pod_interfaces: vec!["eth0".into()],
        primary: true,
        place: 0,
        binding,
        mac: None,
        queues,
        owner: LAUNCHER_USER,
    };
    let namespace = NetNs::of_process(pod.network()).unwrap();
    let wirings = phase1::configure(&namespace, &[request], &[]).await.unwrap();
    pod.options.network_json = serde_json::to_vec(&wirings).unwrap();
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

async fn talk(pod: &Pod, world: &World, vmi: &Value, address: &str, pod_address: &str) {
    let mut console = pod.boot(vmi).await;
    let own = "ip -4 -o addr show eth0 | awk '{ print $4 }'";
    console.until(own, address).await.unwrap();
    let mut listener = world.listen(4000);
    console.until("echo from the guest | nc -w 20 10.9.0.1 4000 && echo sent", "sent").await.unwrap();
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
    wire(&mut pod, Binding::Masquerade(Masquerade::default()), 2).await;
    let vmi = wish(json!({"masquerade": {}}), 2);
    talk(&pod, &world, &vmi, "10.0.2.2/24", "10.9.0.2").await;
    let queues = pod.domain().await.unwrap().spec.unwrap().interfaces[0].queues;
    assert_eq!(queues, 2);
}

#[tokio::test]
async fn a_guest_on_a_bridge_has_the_address_of_its_pod() {
    let mut pod = Pod::start().await;
    pod.container_disk(0);
    let world = World::connect(&pod);
    wire(&mut pod, Binding::Bridge, 1).await;
    talk(&pod, &world, &wish(json!({"bridge": {}}), 1), "10.9.0.2/24", "10.9.0.2").await;
}
