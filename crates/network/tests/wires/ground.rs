//! Network namespaces, the programs `ip` and `nft` in them, and connections between them.
#![expect(unsafe_code, reason = "a new namespace is had by unshare")]

use std::{
    fs::File,
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    os::fd::AsRawFd,
    process::Command,
    thread,
    time::Duration,
};

use kubevirt_network::{InterfaceRequest, NetNs, NetworkError, Wiring, phase1};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde_json::Value;

/// Far more than anything here takes, as tests share machines.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A network namespace with a loopback interface that is up.
pub struct Place {
    pub netns: NetNs,
    file: File,
}

impl Place {
    pub fn new() -> Self {
        let make = || {
            // SAFETY: the thread does nothing else, and the network namespace holds no memory of ours.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.unwrap();
            File::open("/proc/thread-self/ns/net").unwrap()
        };
        let file = thread::spawn(make).join().unwrap();
        let place = Self { netns: file.try_clone().unwrap().into(), file };
        place.ip("link set lo up");
        place
    }

    /// A name for the namespace that other programs understand.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    pub fn inside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        wait(self.netns.run(work)).unwrap()
    }

    pub fn run(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(arguments);
        let output = self.inside(move || command.output().unwrap());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{program} {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn ip(&self, arguments: &str) -> String {
        self.run("ip", &arguments.split(' ').collect::<Vec<_>>())
    }

    /// What `ip` knows of a link.
    pub fn link(&self, name: &str) -> Value {
        let all: Value = serde_json::from_str(&self.ip("-d -j addr show")).unwrap();
        all.as_array().unwrap().iter().find(|link| link["ifname"] == name).cloned().unwrap_or_default()
    }

    /// The names of all links.
    pub fn links(&self) -> Vec<String> {
        let all: Value = serde_json::from_str(&self.ip("-j link show")).unwrap();
        let mut names: Vec<_> =
            all.as_array().unwrap().iter().map(|link| link["ifname"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    /// The addresses of a link, but for those that the kernel gave it.
    pub fn addresses(&self, name: &str) -> Vec<String> {
        let link = self.link(name);
        let text = |entry: &Value| format!("{}/{}", entry["local"].as_str().unwrap(), entry["prefixlen"]);
        let all = link["addr_info"].as_array().unwrap().iter().map(text);
        all.filter(|address| !address.starts_with("fe80")).collect()
    }

    pub fn setting(&self, key: &str) -> String {
        let path = format!("/proc/sys/net/{key}");
        self.inside(move || std::fs::read_to_string(path)).unwrap().trim().to_owned()
    }

    /// Everything that phase 1 could have changed, and that nothing but time does not change.
    pub fn everything(&self) -> Vec<String> {
        let link = |name: &String| {
            let all = self.link(name);
            let of = |key: &str| all[key].clone();
            let up = of("flags").as_array().unwrap().contains(&"UP".into());
            let facts = ["ifindex", "address", "mtu", "master"].map(of);
            format!("{name} {up} {facts:?} {:?}", self.addresses(name))
        };
        let mut all: Vec<_> = self.links().iter().map(link).collect();
        all.push(self.ip("-4 route show table all").replace(" linkdown", ""));
        all.push(self.run("nft", &["-a", "-s", "list", "ruleset"]));
        all
    }

    pub fn listen(&self, address: &str) -> TcpListener {
        let address: SocketAddr = address.parse().unwrap();
        self.inside(move || TcpListener::bind(address)).unwrap()
    }

    pub fn connect(&self, address: &str) -> std::io::Result<TcpStream> {
        let address: SocketAddr = address.parse().unwrap();
        self.inside(move || TcpStream::connect_timeout(&address, PATIENCE))
    }
}

/// A pod with one interface, as a network plugin leaves it.
pub struct Ground {
    pub pod: Place,
    pub world: Place,
}

pub const POD_MAC: &str = "0a:58:0a:09:08:07";

impl Ground {
    pub fn new() -> Self {
        let ground = Self { pod: Place::new(), world: Place::new() };
        ground.cable("eth0", "world0", POD_MAC);
        ground.world.ip("addr add 10.9.8.1/24 dev world0");
        ground.world.ip("addr add fd99::1/64 dev world0 nodad");
        ground.pod.ip("addr add 10.9.8.7/24 dev eth0");
        ground.pod.ip("addr add fd99::7/64 dev eth0 nodad");
        ground.pod.ip("route add default via 10.9.8.1");
        ground.pod.ip("-6 route add default via fd99::1");
        ground
    }

    /// Another interface of the pod.
    pub fn cable(&self, pod_end: &str, world_end: &str, mac: &str) {
        let world = self.world.path();
        self.pod.ip(&format!(
            "link add {pod_end} mtu 1400 address {mac} type veth peer name {world_end} mtu 1400 netns {world}"
        ));
        self.pod.ip(&format!("link set {pod_end} up"));
        self.world.ip(&format!("link set {world_end} up"));
    }

    /// Phase 1, and a second run of it, which must find nothing to do.
    pub fn configure(&self, requests: &[InterfaceRequest]) -> Vec<Wiring> {
        let wirings = wait(phase1::discover(&self.pod.netns, requests, &[])).unwrap();
        self.apply(requests, &wirings).unwrap();
        let before = self.pod.everything();
        let again = wait(phase1::discover(&self.pod.netns, requests, &wirings)).unwrap();
        assert_eq!(again, wirings);
        assert_eq!(self.apply(requests, &again).unwrap(), Vec::<String>::new());
        assert_eq!(self.pod.everything(), before);
        wirings
    }

    pub fn apply(
        &self,
        requests: &[InterfaceRequest],
        wirings: &[Wiring],
    ) -> Result<Vec<String>, NetworkError> {
        let steps = wait(phase1::apply(&self.pod.netns, requests, wirings))?;
        Ok(steps.iter().map(ToString::to_string).collect())
    }
}

pub fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Sends a word from one end of a connection to the other, and tells who was seen at the accepting end.
pub fn talk(listener: &TcpListener, mut caller: TcpStream) -> (IpAddr, IpAddr) {
    let (mut called, peer) = listener.accept().unwrap();
    called.set_read_timeout(Some(PATIENCE)).unwrap();
    caller.write_all(b"hello").unwrap();
    let mut word = [0; 5];
    called.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"hello");
    (peer.ip(), called.local_addr().unwrap().ip())
}
