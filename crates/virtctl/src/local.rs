//! Where ports are opened on this machine.

use std::net::SocketAddr;

use crate::failure::Failure;

/// The address that a host and a port stand for.
pub async fn address(host: &str, port: u16) -> Result<SocketAddr, Failure> {
    let found: Vec<SocketAddr> = match tokio::net::lookup_host((host, port)).await {
        Ok(found) => found.collect(),
        Err(_) => Vec::new(),
    };
    preferred(&found).ok_or_else(|| {
        let what = format!("{host} is not an address of this machine");
        Failure::new(what, "Give an IP address or a name that leads to one with --address.")
    })
}

/// A name may lead to several, as `localhost` does, and it is the one of IPv4 that programs expect behind it.
fn preferred(found: &[SocketAddr]) -> Option<SocketAddr> {
    found.iter().find(|address| address.is_ipv4()).or_else(|| found.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_family_comes_first() {
        for (found, expected) in [
            (vec!["[::1]:80", "127.0.0.1:80"], Some("127.0.0.1:80")),
            (vec!["127.0.0.1:80", "[::1]:80"], Some("127.0.0.1:80")),
            (vec!["[::1]:80", "[::2]:80"], Some("[::1]:80")),
            (vec![], None),
        ] {
            let of = |text: &str| text.parse::<SocketAddr>().unwrap();
            let all: Vec<SocketAddr> = found.iter().map(|text| of(text)).collect();
            assert_eq!(preferred(&all), expected.map(of), "{found:?}");
        }
    }

    #[tokio::test]
    async fn addresses_are_taken_as_they_are() {
        for (host, expected) in [("0.0.0.0", "0.0.0.0:80"), ("::1", "[::1]:80"), ("::", "[::]:80")] {
            assert_eq!(address(host, 80).await.unwrap().to_string(), expected);
        }
        assert!(address("", 80).await.is_err());
    }
}
