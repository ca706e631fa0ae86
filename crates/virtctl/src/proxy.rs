//! Whether a cluster is reached through a proxy of the environment.

use std::net::IpAddr;

use http::Uri;
use ipnet::IpNet;

/// The proxy of the environment for this server; `variable` looks one up.
pub fn of_environment(server: &Uri, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let either = |name: &str| {
        let given = variable(name).filter(|value| !value.is_empty());
        given.or_else(|| variable(&name.to_lowercase()).filter(|value| !value.is_empty()))
    };
    let proxy = either(if server.scheme_str() == Some("http") { "HTTP_PROXY" } else { "HTTPS_PROXY" })?;
    let host = server.host()?.trim_start_matches('[').trim_end_matches(']');
    if is_here(host) || either("NO_PROXY").is_some_and(|list| is_excepted(&list, host)) {
        return None;
    }
    Some(if proxy.contains("://") { proxy } else { format!("http://{proxy}") })
}

/// Nobody goes through a proxy to reach themselves.
fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Names also stand for what is below them, addresses for themselves, networks for all that is in them.
fn is_excepted(list: &str, host: &str) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
        }
        if let Some(address) = address {
            let network = entry.parse::<IpNet>().ok();
            return entry.parse() == Ok(address) || network.is_some_and(|network| network.contains(&address));
        }
        let name = entry.trim_start_matches("*.").trim_start_matches('.');
        host == name || host.strip_suffix(name).is_some_and(|above| above.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_used_unless_the_server_is_excepted() {
        let of = |server: &str, except: &str| {
            let variable = |name: &str| match name {
                "HTTPS_PROXY" => Some("proxy:3128".to_owned()),
                "no_proxy" => Some(except.to_owned()),
                _ => None,
            };
            of_environment(&server.parse().unwrap(), &variable).is_some()
        };
        for (server, except, expected) in [
            ("https://api.example.com:6443", "", true),
            ("https://api.example.com:6443", "example.com", false),
            ("https://api.example.com:6443", ".example.com, x", false),
            ("https://api.example.com:6443", "*.example.com", false),
            ("https://api.example.com:6443", "ample.com", true),
            ("https://api.example.com:6443", "*", false),
            ("https://10.0.0.1:6443", "10.0.0.0/8", false),
            ("https://10.0.0.1:6443", "10.0.0.1", false),
            ("https://10.0.0.1:6443", "11.0.0.0/8", true),
            ("https://127.0.0.1:6443", "", false),
            ("https://[::1]:6443", "", false),
            ("https://localhost:6443", "", false),
            // There is no proxy for plain HTTP here.
            ("http://api.example.com:8080", "", false),
        ] {
            assert_eq!(of(server, except), expected, "{server} {except}");
        }
    }
}
