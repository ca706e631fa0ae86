//! Kubeconfig files and flags made one: which server, which user, which namespace.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kube::config::{
    AuthInfo, Cluster, Config, Context, Kubeconfig, KubeconfigError, NamedAuthInfo, NamedCluster,
    NamedContext,
};

use crate::cluster::Flags;

/// The name of the only context of an [`effective`] kubeconfig.
const ONE: &str = "virtctl";

/// Why no kubeconfig leads to a cluster.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read, or leads nowhere.
    #[error(transparent)]
    File(#[from] KubeconfigError),
    /// A file cannot be understood. There may be several, so it is named.
    #[error("error loading config file {path:?}: {problem}")]
    Text {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A name that nothing in the files has.
    #[error("{kind} {name:?} does not exist")]
    Unknown {
        /// Context, cluster or user.
        kind: &'static str,
        /// The name.
        name: String,
    },
}

/// The files, in the order of precedence: the flag's alone, else those of `KUBECONFIG`, else the one at home. Only a
/// file that a flag names has to exist.
pub fn read(flag: Option<&Path>) -> Result<Kubeconfig, Error> {
    if let Some(path) = flag {
        return file(path);
    }
    let paths = paths(std::env::var_os("KUBECONFIG"), std::env::home_dir());
    let files = paths.iter().filter(|path| path.exists()).map(|path| file(path));
    merged(files.collect::<Result<Vec<_>, _>>()?)
}

fn file(path: &Path) -> Result<Kubeconfig, Error> {
    Kubeconfig::read_from(path).map_err(|error| match error {
        KubeconfigError::Parse(problem) => {
            Error::Text { path: path.to_owned(), problem: without_text(&problem.to_string()) }
        }
        other => other.into(),
    })
}

/// What is wrong and in which line, without the lines themselves that come after it: they hold tokens and keys, and
/// what is printed ends up in logs.
fn without_text(problem: &str) -> String {
    problem.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// What the files say together: the first to say something counts. Nobody says which context to use with an empty
/// name, as files have it that tools write.
fn merged(files: Vec<Kubeconfig>) -> Result<Kubeconfig, Error> {
    let mut all = Kubeconfig::default();
    for mut file in files {
        file.current_context.take_if(|name| name.is_empty());
        all = all.merge(file)?;
    }
    Ok(all)
}

/// Where files may be. A user of a pod may have no home, and needs none.
fn paths(list: Option<OsString>, home: Option<PathBuf>) -> Vec<PathBuf> {
    let listed: Vec<PathBuf> = list
        .map(|list| std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect())
        .unwrap_or_default();
    let own = home.filter(|_| listed.is_empty()).map(|home| home.join(".kube").join("config"));
    listed.into_iter().chain(own).collect()
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
    Ok(Some(one(context, cluster, user)))
}

/// What a pod knows of its own cluster, as a file would say it.
pub fn of_pod(own: &Config) -> Kubeconfig {
    let cluster = Cluster {
        server: Some(own.cluster_url.to_string()),
        certificate_authority: own.root_cert_file.as_ref().map(|file| file.display().to_string()),
        ..Cluster::default()
    };
    let context = Context {
        cluster: ONE.to_owned(),
        user: Some(ONE.to_owned()),
        namespace: Some(own.default_namespace.clone()),
        ..Context::default()
    };
    one(context, cluster, own.auth_info.clone())
}

fn one(context: Context, cluster: Cluster, user: AuthInfo) -> Kubeconfig {
    Kubeconfig {
        contexts: vec![NamedContext {
            name: ONE.to_owned(),
            context: Some(context),
            other: Default::default(),
        }],
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
        current_context: Some(ONE.to_owned()),
        ..Kubeconfig::default()
    }
}

/// Whether an [`effective`] kubeconfig says through which proxy its server is reached.
pub fn names_a_proxy(one: &Kubeconfig) -> bool {
    let clusters = one.clusters.iter().filter_map(|named| named.cluster.as_ref());
    clusters.filter_map(|cluster| cluster.proxy_url.as_ref()).any(|proxy| !proxy.is_empty())
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

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &str = r#"
apiVersion: v1
kind: Config
current-context: one
contexts:
- {name: one, context: {cluster: c1, user: u1, namespace: ns1}}
- {name: two, context: {cluster: c2, user: u2}}
- {name: broken, context: {cluster: gone, user: u1}}
clusters:
- {name: c1, cluster: {server: "https://one:6443", certificate-authority: /ca1}}
- {name: c2, cluster: {server: "https://two:6443", proxy-url: "http://p:1"}}
users:
- {name: u1, user: {client-certificate: /crt1, client-key: /key1}}
- {name: u2, user: {token: t2, as: somebody}}
"#;

    fn of(files: &str, flags: &Flags) -> Result<Option<[String; 4]>, String> {
        told(Kubeconfig::from_yaml(files).unwrap(), flags)
    }

    /// Server, namespace, authority, and who the user is.
    fn told(files: Kubeconfig, flags: &Flags) -> Result<Option<[String; 4]>, String> {
        let one = effective(files, flags).map_err(|error| error.to_string())?;
        Ok(one.map(|one| {
            let value = serde_json::to_value(one).unwrap();
            let text = |pointer: &str| value.pointer(pointer).map(ToString::to_string).unwrap_or_default();
            [
                text("/clusters/0/cluster/server"),
                text("/contexts/0/context/namespace"),
                text("/clusters/0/cluster/certificate-authority"),
                text("/users/0/user"),
            ]
            .map(|text| text.replace('"', ""))
        }))
    }

    fn is(server: &str, namespace: &str, authority: &str, user: &str) -> Result<Option<[String; 4]>, String> {
        Ok(Some([server, namespace, authority, user].map(str::to_owned)))
    }

    #[test]
    fn files_are_listed_or_at_home() {
        for (list, home, expected) in [
            (None, Some("/me"), vec!["/me/.kube/config"]),
            (Some(""), Some("/me"), vec!["/me/.kube/config"]),
            (Some("/a::/b"), Some("/me"), vec!["/a", "/b"]),
            (None, None, vec![]),
        ] {
            let found = paths(list.map(OsString::from), home.map(PathBuf::from));
            assert_eq!(
                found,
                expected.into_iter().map(PathBuf::from).collect::<Vec<_>>(),
                "{list:?} {home:?}"
            );
        }
    }

    #[test]
    fn the_first_file_that_says_something_counts() {
        let unsaid = "current-context: ''\nclusters: [{name: c1, cluster: {server: 'https://other'}}]";
        let two = "current-context: two";
        for (files, expected) in [
            (
                vec![FILES],
                is("https://one:6443", "ns1", "/ca1", "{client-certificate:/crt1,client-key:/key1}"),
            ),
            (
                vec![unsaid, FILES],
                is("https://other", "ns1", "", "{client-certificate:/crt1,client-key:/key1}"),
            ),
            (vec![two, FILES], is("https://two:6443", "", "", "{as:somebody,token:t2}")),
            (
                vec!["", FILES, two],
                is("https://one:6443", "ns1", "/ca1", "{client-certificate:/crt1,client-key:/key1}"),
            ),
            (vec![unsaid], Ok(None)),
        ] {
            let read = files.iter().map(|text| Kubeconfig::from_yaml(text).unwrap());
            let all = merged(read.collect()).unwrap();
            assert_eq!(told(all, &Flags::default()), expected, "{files:?}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let path = std::env::temp_dir().join(format!("virtctl-kubeconfig-{}", std::process::id()));
        std::fs::write(&path, "users:\n- {name: a, user: {token: s3cret}\n- [").unwrap();
        let broken = file(&path).unwrap_err().to_string();
        assert!(broken.contains(": line ") && !broken.contains("s3cret"), "{broken}");
        std::fs::remove_file(&path).unwrap();
        let absent = file(&path).unwrap_err().to_string();
        for told in [broken, absent] {
            assert!(told.contains(path.to_str().unwrap()), "{told}");
        }
    }

    #[test]
    fn flags_choose_and_overrule() {
        let one = "{client-certificate:/crt1,client-key:/key1}";
        let text = |text: &str| Some(text.to_owned());
        let flags = Flags::default;
        for (flags, expected) in [
            (flags(), is("https://one:6443", "ns1", "/ca1", one)),
            (
                Flags { context: text("two"), ..flags() },
                is("https://two:6443", "", "", "{as:somebody,token:t2}"),
            ),
            (Flags { namespace: text("n"), ..flags() }, is("https://one:6443", "n", "/ca1", one)),
            (Flags { cluster: text("c2"), ..flags() }, is("https://two:6443", "ns1", "", one)),
            (
                Flags { user: text("u2"), ..flags() },
                is("https://one:6443", "ns1", "/ca1", "{as:somebody,token:t2}"),
            ),
            (Flags { server: text("host:1"), ..flags() }, is("http://host:1", "ns1", "/ca1", one)),
            (Flags { token: text("t"), ..flags() }, is("https://one:6443", "ns1", "/ca1", "{token:t}")),
            (Flags { insecure_skip_tls_verify: true, ..flags() }, is("https://one:6443", "ns1", "", one)),
            (
                Flags { as_user: text("me"), as_group: vec!["g".into()], as_uid: text("1"), ..flags() },
                is(
                    "https://one:6443",
                    "ns1",
                    "/ca1",
                    "{as:me,as-groups:[g],as-uid:1,client-certificate:/crt1,client-key:/key1}",
                ),
            ),
            (Flags { context: text("three"), ..flags() }, Err("context \"three\" does not exist".into())),
            (Flags { context: text("broken"), ..flags() }, Err("cluster \"gone\" does not exist".into())),
            (Flags { user: text("nobody"), ..flags() }, Err("user \"nobody\" does not exist".into())),
        ] {
            assert_eq!(of(FILES, &flags), expected, "{flags:?}");
        }
    }

    #[test]
    fn flags_overrule_what_a_pod_knows() {
        let mut own = Config::new("https://10.0.0.1/".parse().unwrap());
        own.default_namespace = "pods".into();
        own.root_cert_file = Some("/ca.crt".into());
        own.auth_info.token_file = Some("/token".into());
        let text = |text: &str| Some(text.to_owned());
        for (flags, expected) in [
            (Flags::default(), is("https://10.0.0.1/", "pods", "/ca.crt", "{tokenFile:/token}")),
            (
                Flags { token: text("t"), namespace: text("n"), ..Flags::default() },
                is("https://10.0.0.1/", "n", "/ca.crt", "{token:t}"),
            ),
            (
                Flags { as_user: text("me"), as_uid: text("1"), ..Flags::default() },
                is("https://10.0.0.1/", "pods", "/ca.crt", "{as:me,as-uid:1,tokenFile:/token}"),
            ),
            (
                Flags { insecure_skip_tls_verify: true, ..Flags::default() },
                is("https://10.0.0.1/", "pods", "", "{tokenFile:/token}"),
            ),
        ] {
            assert_eq!(told(of_pod(&own), &flags), expected, "{flags:?}");
        }
    }

    #[test]
    fn a_server_is_enough_and_nothing_is_not() {
        let server = Flags { server: Some("https://a".into()), token: Some("t".into()), ..Flags::default() };
        assert_eq!(of("{}", &server), is("https://a", "", "", "{token:t}"));
        assert_eq!(of("{}", &Flags::default()), Ok(None));
        let two = Flags { context: Some("two".into()), ..Flags::default() };
        let two = effective(Kubeconfig::from_yaml(FILES).unwrap(), &two).unwrap().unwrap();
        assert!(names_a_proxy(&two));
    }
}
