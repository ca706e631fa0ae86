//! Reads `resolv.conf`, so that a guest looks up names the way its pod does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const DEFAULT_SERVER: Ipv4Addr = Ipv4Addr::new(8, 8, 8, 8);
const DEFAULT_DOMAIN: &str = "cluster.local";

/// The name servers and search domains of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvConf {
    /// Name servers with an IPv4 address.
    pub servers4: Vec<Ipv4Addr>,
    /// Name servers with an IPv6 address.
    pub servers6: Vec<Ipv6Addr>,
    /// Search domains, in lower case.
    pub search: Vec<String>,
}

impl ResolvConf {
    /// Reads the file's text. What makes no sense is passed over; what is missing gets a default.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut conf = Self { servers4: Vec::new(), servers6: Vec::new(), search: Vec::new() };
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match (words.next(), words.next()) {
                (Some("nameserver"), Some(address)) => match address.parse() {
                    Ok(IpAddr::V4(address)) => conf.servers4.push(address),
                    Ok(IpAddr::V6(address)) => conf.servers6.push(address),
                    Err(_) => {}
                },
                (Some("search"), Some(first)) => {
                    conf.search.extend(std::iter::once(first).chain(words).map(str::to_lowercase));
                }
                _ => {}
            }
        }
        if conf.servers4.is_empty() && conf.servers6.is_empty() {
            conf.servers4.push(DEFAULT_SERVER);
        }
        if conf.search.is_empty() {
            conf.search.push(DEFAULT_DOMAIN.to_owned());
        }
        conf
    }

    /// The search domains of a guest whose VM has a subdomain: Kubernetes leaves its domain out of the file.
    #[must_use]
    pub fn search_within(&self, subdomain: Option<&str>) -> Vec<String> {
        let services = self.search.iter().filter(|domain| domain.contains(".svc."));
        let own = subdomain.filter(|subdomain| !subdomain.is_empty()).and_then(|subdomain| {
            let domain = longest(services)?;
            (!domain.starts_with(&format!("{subdomain}."))).then(|| format!("{subdomain}.{domain}"))
        });
        own.into_iter().chain(self.search.iter().cloned()).collect()
    }
}

/// The longest of some domains, and the first of those: the one that says most.
pub(crate) fn longest<'a>(domains: impl Iterator<Item = &'a String>) -> Option<&'a str> {
    domains.fold(None, |best: Option<&str>, domain| match best {
        Some(best) if best.len() >= domain.len() => Some(best),
        _ => Some(domain),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = "search ns1.svc.Cluster.local svc.cluster.local cluster.local\n# comment\n\
        nameserver 10.96.0.10\nnameserver fd00::a\nnameserver nonsense\nnameserver\noptions ndots:5\n";

    #[test]
    fn a_pods_file() {
        let conf = ResolvConf::parse(POD);
        assert_eq!(conf.servers4, [Ipv4Addr::new(10, 96, 0, 10)]);
        assert_eq!(conf.servers6, ["fd00::a".parse::<Ipv6Addr>().unwrap()]);
        assert_eq!(conf.search, ["ns1.svc.cluster.local", "svc.cluster.local", "cluster.local"]);
    }

    #[test]
    fn defaults() {
        let conf = ResolvConf::parse("");
        assert_eq!((conf.servers4, conf.search), (vec![DEFAULT_SERVER], vec![DEFAULT_DOMAIN.to_owned()]));
        assert!(ResolvConf::parse("nameserver fd00::a").servers4.is_empty());
    }

    #[test]
    fn subdomains() {
        let conf = ResolvConf::parse(POD);
        assert_eq!(conf.search_within(Some("web"))[0], "web.ns1.svc.cluster.local");
        assert_eq!(conf.search_within(Some("ns1")), conf.search);
        assert_eq!(conf.search_within(Some("")), conf.search);
        assert_eq!(conf.search_within(None), conf.search);
        let elsewhere = ResolvConf::parse("search example.com");
        assert_eq!(elsewhere.search_within(Some("web")), ["example.com"]);
    }
}
