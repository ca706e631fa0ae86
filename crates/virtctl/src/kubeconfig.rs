//! Kubeconfig files and flags made one: which server, which user, which namespace.

use std::path::{Path, PathBuf};

use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};

use crate::cluster::Flags;

/// The name of the only context of an [`effective`] kubeconfig.
const ONE: &str = "virtctl";

/// Why no kubeconfig leads to a cluster.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or understood.
    #[error(transparent)]
    File(#[from] kube::config::KubeconfigError),
    /// A name that nothing in the files has.
    #[error("{kind} {name:?} does not exist")]
    Unknown {
        /// Context, cluster or user.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// The home folder is not known.
    #[error("no kubeconfig is named, and HOME is not set")]
    NoHome,
}

/// The files, in the order of precedence: the flag's alone, else those of `KUBECONFIG`, else the one at home. Only a
/// file that a flag names has to exist.
pub fn read(flag: Option<&Path>) -> Result<Kubeconfig, Error> {
    if let Some(path) = flag {
        return Ok(Kubeconfig::read_from(path)?);
    }
    let listed: Vec<PathBuf> = std::env::var_os("KUBECONFIG")
        .map(|list| std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect())
        .unwrap_or_default();
    let paths = if listed.is_empty() {
        vec![std::env::home_dir().ok_or(Error::NoHome)?.join(".kube").join("config")]
    } else {
        listed
    };
    let mut merged = Kubeconfig::default();
    for path in paths.iter().filter(|path| path.exists()) {
        merged = merged.merge(Kubeconfig::read_from(path)?)?;
    }
    Ok(merged)
}

/// What the flags make of the files: one context with one cluster and one user. `None` if nothing names a server.
pub fn effective(files: Kubeconfig, flags: &Flags) -> Result<Option<Kubeconfig>, Error> {
    let context = context(&files, flags)?;
    let mut cluster = cluster(&files, flags, context.as_ref())?;
    let mut user = user(&files, flags, context.as_ref())?;
    overrule_cluster(&mut cluster, flags);
    overrule_user(&mut user, flags);
    if cluster.server.as_deref().unwrap_or_default().is_empty() {
        return Ok(None);
    }
    let namespace = flags.namespace.clone().or_else(|| context.and_then(|context| context.namespace));
    let context = Context {
        cluster: ONE.to_owned(),
        user: Some(ONE.to_owned()),
        namespace: namespace.filter(|namespace| !namespace.is_empty()),
        ..Context::default()
    };
    Ok(Some(Kubeconfig {
        clusters: vec![NamedCluster {
            name: ONE.to_owned(),
            cluster: Some(cluster),
            other: Default::default(),
        }],
        auth_infos: vec![NamedAuthInfo {
            name: ONE.to_owned(),
            auth_info: Some(user),
            other: Default::default(),
        }],
        contexts: vec![NamedContext {
            name: ONE.to_owned(),
            context: Some(context),
            other: Default::default(),
        }],
        current_context: Some(ONE.to_owned()),
        ..Kubeconfig::default()
    }))
}

fn context(files: &Kubeconfig, flags: &Flags) -> Result<Option<Context>, Error> {
    let named = flags.context.as_ref().or(files.current_context.as_ref()).filter(|name| !name.is_empty());
    let Some(name) = named else { return Ok(None) };
    match files.contexts.iter().find(|context| context.name == *name) {
        Some(context) => Ok(context.context.clone()),
        None => Err(Error::Unknown { kind: "context", name: name.clone() }),
    }
}

fn cluster(files: &Kubeconfig, flags: &Flags, context: Option<&Context>) -> Result<Cluster, Error> {
    let named = flags.cluster.as_ref().or(context.map(|context| &context.cluster));
    let Some(name) = named.filter(|name| !name.is_empty()) else { return Ok(Cluster::default()) };
    match files.clusters.iter().find(|cluster| cluster.name == *name) {
        Some(cluster) => Ok(cluster.cluster.clone().unwrap_or_default()),
        None => Err(Error::Unknown { kind: "cluster", name: name.clone() }),
    }
}

fn user(files: &Kubeconfig, flags: &Flags, context: Option<&Context>) -> Result<AuthInfo, Error> {
    let named = flags.user.as_ref().or(context.and_then(|context| context.user.as_ref()));
    let Some(name) = named.filter(|name| !name.is_empty()) else { return Ok(AuthInfo::default()) };
    match files.auth_infos.iter().find(|user| user.name == *name) {
        Some(user) => Ok(user.auth_info.clone().unwrap_or_default()),
        None => Err(Error::Unknown { kind: "user", name: name.clone() }),
    }
}

fn overrule_cluster(cluster: &mut Cluster, flags: &Flags) {
    if let Some(server) = &flags.server {
        cluster.server =
            Some(if server.contains("://") { server.clone() } else { format!("http://{server}") });
    }
    if let Some(file) = &flags.certificate_authority {
        cluster.certificate_authority = Some(file.clone());
        cluster.certificate_authority_data = None;
    }
    if flags.insecure_skip_tls_verify {
        cluster.insecure_skip_tls_verify = Some(true);
        cluster.certificate_authority = None;
        cluster.certificate_authority_data = None;
    }
    if flags.disable_compression {
        cluster.disable_compression = Some(true);
    }
    overrule(&mut cluster.tls_server_name, &flags.tls_server_name);
    overrule(&mut cluster.proxy_url, &flags.proxy_url);
}

/// Who proves who they are by flags does so by nothing else: a certificate would speak for somebody else first.
fn overrule_user(user: &mut AuthInfo, flags: &Flags) {
    if flags.token.is_some() || flags.username.is_some() || flags.client_certificate.is_some() {
        *user = AuthInfo {
            impersonate: user.impersonate.take(),
            impersonate_uid: user.impersonate_uid.take(),
            impersonate_groups: user.impersonate_groups.take(),
            impersonate_user_extra: user.impersonate_user_extra.take(),
            ..AuthInfo::default()
        };
    }
    if let Some(token) = &flags.token {
        user.token = Some(token.clone().into());
    }
    overrule(&mut user.username, &flags.username);
    if let Some(password) = &flags.password {
        user.password = Some(password.clone().into());
    }
    if let Some(file) = &flags.client_certificate {
        user.client_certificate = Some(file.clone());
    }
    if let Some(file) = &flags.client_key {
        user.client_key = Some(file.clone());
        user.client_key_data = None;
    }
    overrule(&mut user.impersonate, &flags.as_user);
    overrule(&mut user.impersonate_uid, &flags.as_uid);
    if !flags.as_group.is_empty() {
        user.impersonate_groups = Some(flags.as_group.clone());
    }
}

fn overrule(value: &mut Option<String>, flag: &Option<String>) {
    if flag.is_some() {
        value.clone_from(flag);
    }
}
