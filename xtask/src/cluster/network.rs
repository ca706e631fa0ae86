//! The cluster's network: a namespace with a bridge for the control plane, and a cable to every node.
//!
//! Namespaces have no names: they live as long as the processes in them, so nothing is left of a crash.

use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::layout::{API_PORT, HUB, Layout, Node};
use super::processes::{self, Started};

/// The process that holds the control plane's network namespace.
pub const HOLDER: &str = "network";
/// The process on this machine's loopback that leads to the API server.
pub const FORWARDER_OUTSIDE: &str = "forwarder-outside";
/// Its other half in the control plane's network.
pub const FORWARDER_INSIDE: &str = "forwarder-inside";

/// Starts the process that holds the control plane's namespace, and makes the bridge in it.
pub fn start_hub(layout: &Layout) -> Result<Started> {
    let holder =
        processes::start(layout, HOLDER, &["unshare", "--net", "sleep", "infinity"].map(Into::into))?;
    let mut started = [holder];
    let id = started[0].id();
    processes::wait_until(&mut started, HOLDER, Duration::from_secs(10), || ensure_own_network(id))?;
    ip(id, &hub_lines())?;
    let [holder] = started;
    Ok(holder)
}

/// Lets clients on this machine's loopback reach the API server.
pub fn start_forwarders(layout: &Layout, hub: u32, port: u16) -> Result<Vec<Started>> {
    let socket = layout.api_socket();
    let outside = [
        "socat".to_owned(),
        format!("TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork"),
        format!("UNIX-CONNECT:{}", socket.display()),
    ];
    let inside = [
        "nsenter".to_owned(),
        format!("--net=/proc/{hub}/ns/net"),
        "socat".to_owned(),
        format!("UNIX-LISTEN:{},mode=600,fork", socket.display()),
        format!("TCP:{HUB}:{API_PORT}"),
    ];
    Ok(vec![
        processes::start(layout, FORWARDER_OUTSIDE, &outside.map(Into::into))?,
        processes::start(layout, FORWARDER_INSIDE, &inside.map(Into::into))?,
    ])
}

/// Connects the namespace of the process `inside` to the hub's, as `node` with these `others` beside it.
pub fn connect(hub: u32, inside: u32, node: &Node, others: &[Node]) -> Result<()> {
    // After a restart, the kernel takes a moment to remove the old cable.
    let _ = ip(hub, &[format!("link delete {}", node.name)]);
    ip(hub, &cable_lines(inside, node))?;
    ip(inside, &node_lines(node, others))
}

/// Whether the process has a network namespace other than ours.
pub fn ensure_own_network(process: u32) -> Result<()> {
    let ours = fs::read_link("/proc/self/ns/net")?;
    ensure!(fs::read_link(format!("/proc/{process}/ns/net"))? != ours, "no network namespace yet");
    Ok(())
}

fn hub_lines() -> Vec<String> {
    vec![
        "link set lo up".into(),
        format!("link add br0 address {} type bridge", hardware_address(HUB)),
        format!("address add {HUB}/24 dev br0"),
        "link set br0 up".into(),
    ]
}

fn cable_lines(inside: u32, node: &Node) -> Vec<String> {
    vec![
        format!(
            "link add {} type veth peer name eth0 address {} netns {inside}",
            node.name,
            hardware_address(node.address())
        ),
        format!("link set {} master br0 up", node.name),
        format!("route replace {} via {}", node.pod_network(), node.address()),
    ]
}

fn node_lines(node: &Node, others: &[Node]) -> Vec<String> {
    let mut lines = vec![
        "link set lo up".into(),
        format!("address add {}/24 dev eth0", node.address()),
        "link set eth0 up".into(),
        format!("route add default via {HUB}"),
    ];
    lines.extend(
        others.iter().map(|other| format!("route add {} via {}", other.pod_network(), other.address())),
    );
    lines
}

/// Made from the address, so that what others remember of a node is right after it restarted; a bridge would
/// otherwise take one from its cables and change it with them.
fn hardware_address(address: Ipv4Addr) -> String {
    let [a, b, c, d] = address.octets();
    format!("02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

/// Runs lines of `ip` in the network namespace of a process.
fn ip(process: u32, lines: &[String]) -> Result<()> {
    let mut child = Command::new("nsenter")
        .args([&format!("--net=/proc/{process}/ns/net"), "ip", "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("run ip")?;
    let mut input = child.stdin.take().context("no input")?;
    input.write_all(lines.join("\n").as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("network: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_node_knows_the_way_to_the_others() {
        let layout = Layout::new(Path::new("/c"), "x").unwrap();
        let lines = node_lines(&layout.node(1), &[layout.node(2), layout.node(3)]);
        assert!(lines.contains(&"address add 10.199.0.11/24 dev eth0".to_owned()));
        assert!(lines.contains(&"route add 10.200.2.0/24 via 10.199.0.12".to_owned()));
        assert!(lines.contains(&"route add 10.200.3.0/24 via 10.199.0.13".to_owned()));
    }

    #[test]
    fn the_hub_knows_the_way_to_every_pod() {
        let layout = Layout::new(Path::new("/c"), "x").unwrap();
        let lines = cable_lines(42, &layout.node(2));
        assert_eq!(lines[0], "link add node02 type veth peer name eth0 address 02:00:0a:c7:00:0c netns 42");
        assert_eq!(lines[2], "route replace 10.200.2.0/24 via 10.199.0.12");
    }
}
