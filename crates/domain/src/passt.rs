//! User-mode networking: passt, a process of its own beside QEMU that shares the guest's memory.

use crate::domain::network::{ForwardedPorts, Ports};

/// Arguments of passt for one network card. It ends when QEMU closes its end of the socket.
pub fn arguments(socket: &str, ports: &ForwardedPorts) -> Vec<String> {
    let fixed = ["--foreground", "--one-off", "--vhost-user", "--socket", socket];
    let forwarded = [("--tcp-ports", &ports.tcp), ("--udp-ports", &ports.udp)];
    let forwarded = forwarded.into_iter().flat_map(|(flag, ports)| [flag.to_owned(), words(ports)]);
    fixed.into_iter().map(str::to_owned).chain(forwarded).collect()
}

fn words(ports: &Ports) -> String {
    match ports {
        Ports::All => "all".to_owned(),
        Ports::AllBut { ports } if ports.is_empty() => "all".to_owned(),
        Ports::AllBut { ports } => list(ports, "~"),
        Ports::Only { ports } if ports.is_empty() => "none".to_owned(),
        Ports::Only { ports } => list(ports, ""),
    }
}

fn list(ports: &[u16], mark: &str) -> String {
    ports.iter().map(|port| format!("{mark}{port}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_said_as_passt_reads_them() {
        let cases = [
            (Ports::All, "all"),
            (Ports::AllBut { ports: vec![] }, "all"),
            (Ports::AllBut { ports: vec![15000, 15001] }, "~15000,~15001"),
            (Ports::Only { ports: vec![] }, "none"),
            (Ports::Only { ports: vec![80, 8080] }, "80,8080"),
        ];
        for (ports, expected) in cases {
            assert_eq!(words(&ports), expected, "{ports:?}");
        }
    }
}
