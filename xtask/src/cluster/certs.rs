//! Certificates, keys and kubeconfigs of a cluster.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::{Value, json};

use super::layout::{API_SERVICE, HUB, Layout, Node};

/// The authority of servers and users.
pub const CLUSTER_CA: &str = "ca";
/// The authority of the API server when it speaks to aggregated ones for a user.
pub const FRONT_PROXY_CA: &str = "front-proxy-ca";
/// The key with which service account tokens are signed.
pub const SERVICE_ACCOUNTS: &str = "service-accounts";

/// What a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The name of its files.
    pub file: String,
    authority: &'static str,
    common_name: String,
    organization: Option<&'static str>,
    /// Names and addresses of a server; empty for a client.
    hosts: Vec<String>,
}

impl Subject {
    fn client(file: &str, common_name: &str, organization: Option<&'static str>) -> Self {
        let (file, common_name) = (file.to_owned(), common_name.to_owned());
        Self { file, authority: CLUSTER_CA, common_name, organization, hosts: Vec::new() }
    }
}

/// The certificates of the control plane.
pub fn control_plane() -> Vec<Subject> {
    let hosts = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost", "127.0.0.1"];
    let hosts =
        hosts.into_iter().map(str::to_owned).chain([API_SERVICE.to_string(), HUB.to_string()]).collect();
    vec![
        Subject { hosts, ..Subject::client("kube-apiserver", "kube-apiserver", None) },
        Subject::client("kube-apiserver-kubelet-client", "kube-apiserver", Some("system:masters")),
        Subject {
            authority: FRONT_PROXY_CA,
            ..Subject::client("front-proxy-client", "front-proxy-client", None)
        },
        Subject::client("admin", "admin", Some("system:masters")),
        Subject::client("kube-controller-manager", "system:kube-controller-manager", None),
        Subject::client("kube-scheduler", "system:kube-scheduler", None),
    ]
}

/// The certificates of a node.
pub fn node(node: &Node) -> Vec<Subject> {
    let name = format!("system:node:{}", node.name);
    let server = Subject::client(&format!("{}-kubelet-server", node.name), &name, Some("system:nodes"));
    vec![
        Subject::client(&format!("{}-kubelet", node.name), &name, Some("system:nodes")),
        Subject { hosts: vec![node.name.clone(), node.address().to_string()], ..server },
        Subject::client(&format!("{}-kube-proxy", node.name), "system:kube-proxy", None),
    ]
}

/// The path of a certificate.
pub fn certificate(layout: &Layout, file: &str) -> PathBuf {
    layout.certificates().join(format!("{file}.crt"))
}

/// The path of a private key.
pub fn key(layout: &Layout, file: &str) -> PathBuf {
    layout.certificates().join(format!("{file}.key"))
}

/// The path of a public key.
pub fn public_key(layout: &Layout, file: &str) -> PathBuf {
    layout.certificates().join(format!("{file}.pub"))
}

/// Writes both authorities, the service account key and a certificate for each subject.
pub fn write(layout: &Layout, subjects: &[Subject]) -> Result<()> {
    fs::create_dir_all(layout.certificates())?;
    let cluster = authority(layout, CLUSTER_CA)?;
    let front_proxy = authority(layout, FRONT_PROXY_CA)?;
    let service_accounts = KeyPair::generate()?;
    write_private(&key(layout, SERVICE_ACCOUNTS), &service_accounts.serialize_pem())?;
    fs::write(public_key(layout, SERVICE_ACCOUNTS), service_accounts.public_key_pem())?;
    for subject in subjects {
        let issuer = if subject.authority == FRONT_PROXY_CA { &front_proxy } else { &cluster };
        issue(layout, subject, issuer).with_context(|| format!("certificate {}", subject.file))?;
    }
    Ok(())
}

fn authority(layout: &Layout, name: &str) -> Result<Issuer<'static, KeyPair>> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, format!("{}-{name}", layout.name()));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let pair = KeyPair::generate()?;
    fs::write(certificate(layout, name), params.self_signed(&pair)?.pem())?;
    write_private(&key(layout, name), &pair.serialize_pem())?;
    Ok(Issuer::new(params, pair))
}

fn issue(layout: &Layout, subject: &Subject, issuer: &Issuer<'_, KeyPair>) -> Result<()> {
    let mut params = CertificateParams::new(subject.hosts.clone())?;
    params.distinguished_name.push(DnType::CommonName, subject.common_name.clone());
    if let Some(organization) = subject.organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![match subject.hosts.is_empty() {
        true => ExtendedKeyUsagePurpose::ClientAuth,
        false => ExtendedKeyUsagePurpose::ServerAuth,
    }];
    params.use_authority_key_identifier_extension = true;
    let pair = KeyPair::generate()?;
    fs::write(certificate(layout, &subject.file), params.signed_by(&pair, issuer)?.pem())?;
    write_private(&key(layout, &subject.file), &pair.serialize_pem())
}

fn write_private(path: &Path, text: &str) -> Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}

/// Writes a kubeconfig for the user whose certificate is called `user`.
pub fn write_kubeconfig(layout: &Layout, user: &str, server: &str) -> Result<()> {
    let path = layout.component_kubeconfig(user);
    fs::create_dir_all(layout.root().join("kubeconfig"))?;
    write_private(&path, &serde_json::to_string_pretty(&kubeconfig(layout, user, server))?)
}

/// A kubeconfig, which may be JSON as well as YAML.
fn kubeconfig(layout: &Layout, user: &str, server: &str) -> Value {
    let name = layout.name();
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {
            "server": server,
            "certificate-authority": certificate(layout, CLUSTER_CA),
        }}],
        "users": [{"name": user, "user": {
            "client-certificate": certificate(layout, user),
            "client-key": key(layout, user),
        }}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn writes_every_certificate_with_a_private_key() {
        let cache = std::env::temp_dir().join(format!("kubevirt-rs-certs-{}", std::process::id()));
        let layout = Layout::new(&cache, "one").unwrap();
        let subjects: Vec<Subject> = control_plane().into_iter().chain(node(&layout.node(1))).collect();
        write(&layout, &subjects).unwrap();
        for file in subjects.iter().map(|subject| subject.file.as_str()).chain([CLUSTER_CA, FRONT_PROXY_CA]) {
            let text = fs::read_to_string(certificate(&layout, file)).unwrap();
            assert!(text.starts_with("-----BEGIN CERTIFICATE-----"), "{file}");
            assert_eq!(
                fs::metadata(key(&layout, file)).unwrap().permissions().mode() & 0o777,
                0o600,
                "{file}"
            );
        }
        fs::remove_dir_all(cache).unwrap();
    }

    #[test]
    fn the_api_server_answers_to_all_its_names() {
        let subjects = control_plane();
        let server = subjects.iter().find(|subject| subject.file == "kube-apiserver").unwrap();
        for host in ["127.0.0.1", "10.96.0.1", "10.199.0.1", "kubernetes.default.svc"] {
            assert!(server.hosts.iter().any(|one| one == host), "{host}");
        }
        assert_eq!(subjects.iter().filter(|subject| !subject.hosts.is_empty()).count(), 1);
    }

    #[test]
    fn a_kubeconfig_names_the_files_of_its_user() {
        let layout = Layout::new(Path::new("/c"), "one").unwrap();
        let config = kubeconfig(&layout, "admin", "https://127.0.0.1:1");
        assert_eq!(config["users"][0]["user"]["client-key"], "/c/clusters/one/pki/admin.key");
        assert_eq!(config["clusters"][0]["cluster"]["server"], "https://127.0.0.1:1");
        assert_eq!(config["current-context"], "one");
    }
}
