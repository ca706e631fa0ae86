//! The flags that say which cluster is meant and who asks: those of kubectl.

use std::path::PathBuf;
use std::time::Duration;

use crate::flags;

/// Flags that every command takes.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Flags of every command")]
pub struct Flags {
    /// Path to the kubeconfig file to use for requests
    #[arg(long, global = true, hide = true, value_name = "FILE", value_parser = flags::path())]
    pub kubeconfig: Option<PathBuf>,
    /// The name of the kubeconfig context to use
    #[arg(long, global = true, hide = true, value_name = "NAME")]
    pub context: Option<String>,
    /// The name of the kubeconfig cluster to use
    #[arg(long, global = true, hide = true, value_name = "NAME")]
    pub cluster: Option<String>,
    /// The name of the kubeconfig user to use
    #[arg(long, global = true, hide = true, value_name = "NAME")]
    pub user: Option<String>,
    /// The namespace of this request, instead of the context's
    #[arg(long, short = 'n', global = true, hide = true, value_parser = flags::namespace())]
    pub namespace: Option<String>,
    /// The address and port of the Kubernetes API server
    #[arg(long, short = 's', global = true, hide = true, value_name = "URL")]
    pub server: Option<String>,
    /// Bearer token for authentication to the API server
    #[arg(long, global = true, hide = true)]
    pub token: Option<String>,
    /// Username to impersonate
    #[arg(long = "as", id = "as", global = true, hide = true, value_name = "USER")]
    pub as_user: Option<String>,
    /// Group to impersonate, once for each group
    #[arg(long, global = true, hide = true, value_name = "GROUP")]
    pub as_group: Vec<String>,
    /// UID to impersonate
    #[arg(long, global = true, hide = true, value_name = "UID")]
    pub as_uid: Option<String>,
    /// Path to a certificate file of the certificate authority
    #[arg(long, global = true, hide = true, value_name = "FILE")]
    pub certificate_authority: Option<String>,
    /// Path to a client certificate file for TLS
    #[arg(long, global = true, hide = true, value_name = "FILE")]
    pub client_certificate: Option<String>,
    /// Path to a client key file for TLS
    #[arg(long, global = true, hide = true, value_name = "FILE")]
    pub client_key: Option<String>,
    /// Do not check the server's certificate: whoever answers is believed
    #[arg(long, global = true, hide = true)]
    pub insecure_skip_tls_verify: bool,
    /// The server name to check the server's certificate against
    #[arg(long, global = true, hide = true, value_name = "NAME")]
    pub tls_server_name: Option<String>,
    /// The proxy to reach the API server through
    #[arg(long, global = true, hide = true, value_name = "URL")]
    pub proxy_url: Option<String>,
    /// Do not ask for compressed answers
    #[arg(long, global = true, hide = true)]
    pub disable_compression: bool,
    /// How long to wait for an answer, as in 1s, 2m or 3h; 0 is for ever
    #[arg(long, global = true, hide = true, value_name = "TIME", value_parser = flags::timeout)]
    pub request_timeout: Option<Duration>,
    /// Username for basic authentication to the API server
    #[arg(long, global = true, hide = true)]
    pub username: Option<String>,
    /// Password for basic authentication to the API server
    #[arg(long, global = true, hide = true)]
    pub password: Option<String>,
    /// Accepted for kubectl's sake: nothing is cached
    #[arg(long, global = true, hide = true, value_name = "DIRECTORY", value_parser = flags::path())]
    pub cache_dir: Option<PathBuf>,
    /// How much to log, from 0 to 9
    #[arg(
        long = "v",
        short = 'v',
        id = "v",
        global = true,
        hide = true,
        default_value_t = 0,
        value_name = "LEVEL"
    )]
    pub verbosity: u32,
}

/// The flags that commands have of their own, with another meaning.
const SHADOWED: [&str; 3] = ["user", "username", "password"];

impl Flags {
    /// Whether a command that has a flag by this name takes it away from the cluster.
    pub fn has(id: &str) -> bool {
        SHADOWED.contains(&id)
    }

    /// Takes a flag back that was meant for a command.
    pub fn forget(&mut self, id: &str) {
        match id {
            "user" => self.user = None,
            "username" => self.username = None,
            "password" => self.password = None,
            _ => {}
        }
    }

    /// Takes back what is empty: scripts give `-n "$NAMESPACE"` whether there is one or not, and kubectl takes that for
    /// nothing.
    pub fn forget_empty(&mut self) {
        let texts = [
            &mut self.context,
            &mut self.cluster,
            &mut self.user,
            &mut self.namespace,
            &mut self.server,
            &mut self.token,
            &mut self.as_user,
            &mut self.as_uid,
            &mut self.certificate_authority,
            &mut self.client_certificate,
            &mut self.client_key,
            &mut self.tls_server_name,
            &mut self.proxy_url,
            &mut self.username,
            &mut self.password,
        ];
        for text in texts {
            text.take_if(|text| text.is_empty());
        }
        for path in [&mut self.kubeconfig, &mut self.cache_dir] {
            path.take_if(|path| path.as_os_str().is_empty());
        }
    }

    /// The flags as arguments, for a program that is to reach the same cluster as the same user.
    pub fn arguments(&self) -> Vec<String> {
        let path = |path: &Option<PathBuf>| {
            path.as_ref()
                .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string())
        };
        let file = |file: &Option<String>| path(&file.as_ref().map(PathBuf::from));
        let text = Option::<String>::clone;
        let switch = |on: bool| on.then(|| "true".to_owned());
        let pairs = [
            ("kubeconfig", path(&self.kubeconfig)),
            ("context", text(&self.context)),
            ("cluster", text(&self.cluster)),
            ("user", text(&self.user)),
            ("server", text(&self.server)),
            ("token", text(&self.token)),
            ("as", text(&self.as_user)),
            ("as-uid", text(&self.as_uid)),
            ("certificate-authority", file(&self.certificate_authority)),
            ("client-certificate", file(&self.client_certificate)),
            ("client-key", file(&self.client_key)),
            ("insecure-skip-tls-verify", switch(self.insecure_skip_tls_verify)),
            ("tls-server-name", text(&self.tls_server_name)),
            ("proxy-url", text(&self.proxy_url)),
            ("username", text(&self.username)),
            ("password", text(&self.password)),
        ];
        let groups = self.as_group.iter().map(|group| format!("--as-group={group}"));
        let given = pairs.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value?)));
        given.chain(groups).collect()
    }
}
