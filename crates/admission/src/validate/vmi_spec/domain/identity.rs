//! The names that the guest and its pod go by: host name, subdomain and service account.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use crate::validate::names::{DNS_LABEL, DNS_SUBDOMAIN, is_dns_label, is_dns_subdomain};
use crate::{Path, Problems};

/// Everything that is wrong.
pub(super) fn check(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let hostname = spec.hostname.as_deref().unwrap_or_default();
    if !hostname.is_empty() && !is_dns_label(hostname) {
        let message = format!("host name {hostname:?} is not a DNS label: {DNS_LABEL}");
        problems.invalid(&path.at("hostname"), message);
    }
    let subdomain = spec.subdomain.as_deref().unwrap_or_default();
    if !subdomain.is_empty() && !is_dns_subdomain(subdomain) {
        let message = format!("{subdomain:?} is not a DNS subdomain: {DNS_SUBDOMAIN}");
        problems.invalid(&path.at("subdomain"), message);
    }
    check_service_account(path, spec, problems);
}

fn check_service_account(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let account = spec.service_account_name.as_deref().unwrap_or_default();
    if account.is_empty() {
        return;
    }
    let field = path.at("serviceAccountName");
    if !is_dns_subdomain(account) {
        problems.invalid(&field, format!("{account:?} cannot name a service account: {DNS_SUBDOMAIN}"));
    }
    let of_volumes = spec.volumes.iter().flatten().filter_map(|volume| volume.service_account.as_ref());
    let mut of_volumes = of_volumes.map(|source| source.service_account_name.as_deref().unwrap_or_default());
    if let Some(other) = of_volumes.find(|other| *other != account) {
        let message = format!(
            "a pod runs under one service account, but this is {account:?} and a volume asks for {other:?}; \
             name the same one in both"
        );
        problems.invalid(&field, message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::run;
    use crate::testing::World;

    #[test]
    fn names_have_the_shape_of_dns_names() {
        let account =
            |name: &str| json!([{ "name": "token", "serviceAccount": { "serviceAccountName": name } }]);
        run(
            &World::default(),
            &[
                ("host name", json!({ "hostname": "web-1" }), &[]),
                ("empty host name", json!({ "hostname": "" }), &[]),
                ("host name with dots", json!({ "hostname": "web.example" }), &["spec.hostname"]),
                ("upper-case host name", json!({ "hostname": "Web" }), &["spec.hostname"]),
                ("long host name", json!({ "hostname": "a".repeat(64) }), &["spec.hostname"]),
                ("subdomain", json!({ "subdomain": "web.example" }), &[]),
                ("bad subdomain", json!({ "subdomain": "web_example" }), &["spec.subdomain"]),
                ("account", json!({ "serviceAccountName": "robot.x" }), &[]),
                ("bad account", json!({ "serviceAccountName": "Robot" }), &["spec.serviceAccountName"]),
                (
                    "same account in a volume",
                    json!({ "serviceAccountName": "robot", "volumes": account("robot") }),
                    &[],
                ),
                (
                    "other account in a volume",
                    json!({ "serviceAccountName": "robot", "volumes": account("other") }),
                    &["spec.serviceAccountName"],
                ),
                ("only a volume", json!({ "volumes": account("other") }), &[]),
            ],
        );
    }
}
