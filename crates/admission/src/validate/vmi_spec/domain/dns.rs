//! The DNS settings of the pod, which follow the rules of Kubernetes.

use k8s_openapi::api::core::v1::PodDNSConfig;
use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use crate::validate::address;
use crate::validate::names::{DNS_SUBDOMAIN, is_dns_subdomain};
use crate::{Path, Problems};

const POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const MOST_NAME_SERVERS: usize = 3;
const MOST_SEARCH_DOMAINS: usize = 6;
const LONGEST_SEARCH_LIST: usize = 256;

/// Everything that is wrong.
pub(super) fn check(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let policy = spec.dns_policy.as_deref().unwrap_or_default();
    if !policy.is_empty() && !POLICIES.contains(&policy) {
        let message = format!("DNS policy {policy:?} is not known; use one of {}", POLICIES.join(", "));
        problems.not_supported(&path.at("dnsPolicy"), message);
    }
    match &spec.dns_config {
        None if policy == "None" => {
            problems.required(&path.at("dnsConfig"), "the DNS policy None needs dnsConfig with name servers");
        }
        None => {}
        Some(config) => check_config(config, policy, problems),
    }
}

/// The fields stand alone here, as users of the original know them.
fn check_config(config: &PodDNSConfig, policy: &str, problems: &mut Problems) {
    let at_servers = Path::new("nameservers");
    let servers = config.nameservers.as_deref().unwrap_or_default();
    if servers.is_empty() && policy == "None" {
        problems.required(&at_servers, "the DNS policy None needs at least one name server");
    }
    if servers.len() > MOST_NAME_SERVERS {
        let message = format!("{} name servers are more than {MOST_NAME_SERVERS}", servers.len());
        problems.invalid(&at_servers, message);
    }
    for server in servers.iter().filter(|server| address::ip(server).is_none()) {
        problems.invalid(&at_servers, format!("{server:?} is not an IP address"));
    }

    let at_searches = Path::new("searchDomains");
    let searches = config.searches.as_deref().unwrap_or_default();
    if searches.len() > MOST_SEARCH_DOMAINS {
        let message = format!("{} search domains are more than {MOST_SEARCH_DOMAINS}", searches.len());
        problems.invalid(&at_searches, message);
    }
    let spaces = searches.len().saturating_sub(1);
    let length = searches.iter().map(String::len).fold(spaces, usize::saturating_add);
    if length > LONGEST_SEARCH_LIST {
        let message = format!("the search domains are {length} characters, more than {LONGEST_SEARCH_LIST}");
        problems.invalid(&at_searches, message);
    }
    for search in searches.iter().filter(|search| !is_dns_subdomain(search)) {
        problems.invalid(&at_searches, format!("{search:?} is not a DNS subdomain: {DNS_SUBDOMAIN}"));
    }
    for option in config.options.iter().flatten() {
        if option.name.as_deref().unwrap_or_default().is_empty() {
            problems.invalid(&Path::new("options"), "an option has no name");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{reasons, run};
    use crate::Reason;
    use crate::testing::World;

    #[test]
    fn dns_settings() {
        let config = |config: Value| json!({ "dnsConfig": config });
        let servers = |servers: &[&str]| json!({ "dnsConfig": { "nameservers": servers } });
        let searches = |searches: &[&str]| json!({ "dnsConfig": { "searches": searches } });
        let long = "a".repeat(129);
        run(
            &World::default(),
            &[
                ("ClusterFirst", json!({ "dnsPolicy": "ClusterFirst" }), &[]),
                ("ClusterFirstWithHostNet", json!({ "dnsPolicy": "ClusterFirstWithHostNet" }), &[]),
                ("Default", json!({ "dnsPolicy": "Default" }), &[]),
                ("empty", json!({ "dnsPolicy": "" }), &[]),
                ("unknown", json!({ "dnsPolicy": "Magic" }), &["spec.dnsPolicy"]),
                ("None alone", json!({ "dnsPolicy": "None" }), &["spec.dnsConfig"]),
                ("None without servers", json!({ "dnsPolicy": "None", "dnsConfig": {} }), &["nameservers"]),
                ("None", json!({ "dnsPolicy": "None", "dnsConfig": { "nameservers": ["1.1.1.1"] } }), &[]),
                ("empty config", config(json!({})), &[]),
                ("servers", servers(&["1.2.3.4", "fd00::1"]), &[]),
                ("four servers", servers(&["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]), &["nameservers"]),
                ("no address", servers(&["dns.example.com"]), &["nameservers"]),
                ("leading zero", servers(&["1.2.3.04"]), &[]),
                ("searches", searches(&["a.example", "b.example"]), &[]),
                ("seven searches", searches(&["a", "b", "c", "d", "e", "f", "g"]), &["searchDomains"]),
                ("long searches", searches(&[&long, &long]), &["searchDomains"]),
                ("no domain", searches(&["a_b"]), &["searchDomains"]),
                ("option", config(json!({ "options": [{ "name": "ndots", "value": "2" }] })), &[]),
                (
                    "nameless options",
                    config(json!({ "options": [{ "name": "" }, { "value": "2" }] })),
                    &["options", "options"],
                ),
            ],
        );
        for (patch, reason) in [
            (json!({ "dnsPolicy": "Magic" }), Reason::NotSupported),
            (json!({ "dnsPolicy": "None" }), Reason::Required),
            (json!({ "dnsPolicy": "None", "dnsConfig": {} }), Reason::Required),
        ] {
            assert_eq!(reasons(&World::default(), &patch), [reason], "{patch}");
        }
    }
}
