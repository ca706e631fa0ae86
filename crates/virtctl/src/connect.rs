//! From flags to a cluster, no sooner than a command needs one.

use std::time::Duration;

use anyhow::{Context as _, Result};
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use kubevirt_api::version::VERSION;
use tokio::sync::OnceCell;

use crate::cluster::Flags;
use crate::failure::Failure;
use crate::program::Program;
use crate::{kubeconfig, proxy};

/// How to reach a cluster, before anybody has tried.
#[derive(Debug)]
pub struct Connect {
    /// What the user said about the cluster.
    pub flags: Flags,
    /// How the program was called.
    pub program: Program,
    session: OnceCell<Session>,
}

/// A cluster, and what the user may want of it.
#[derive(Clone)]
pub struct Session {
    /// The client.
    pub client: Client,
    /// The namespace of whatever does not name one.
    pub namespace: String,
    /// The client of what may take long: it does not give up waiting for the next byte.
    pub(crate) patient: Client,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Connect {
    /// With what the user said.
    pub fn new(flags: Flags, program: Program) -> Self {
        Self { flags, program, session: OnceCell::new() }
    }

    /// The cluster, connected to at the first call.
    pub async fn session(&self) -> Result<&Session> {
        self.session.get_or_try_init(|| async { Session::open(self.config().await?) }).await
    }

    /// The cluster, if something has been asked of it.
    pub fn opened(&self) -> Option<&Session> {
        self.session.get()
    }

    /// The namespace that is meant where none is named. Needs a kubeconfig at most, not a cluster.
    pub async fn namespace(&self) -> Result<String> {
        if let Some(namespace) = &self.flags.namespace {
            return Ok(namespace.clone());
        }
        Ok(self.config().await?.default_namespace)
    }

    async fn config(&self) -> Result<Config> {
        let files = kubeconfig::read(self.flags.kubeconfig.as_deref()).map_err(unreadable)?;
        let one = match kubeconfig::effective(files, &self.flags).map_err(unreadable)? {
            Some(one) => one,
            None => self.of_pod()?,
        };
        let named = kubeconfig::names_a_proxy(&one);
        let mut config = Config::from_custom_kubeconfig(one, &KubeConfigOptions::default())
            .await
            .map_err(|error| unreadable(error.into()))?;
        if !named {
            // kube looks up the proxy's own name among the exceptions, not the server's.
            let found = proxy::of_environment(&config.cluster_url, &|name| std::env::var(name).ok());
            config.proxy_url =
                found.map(|proxy| proxy.parse()).transpose().context("the proxy's URL cannot be read")?;
        }
        let own_name = HeaderValue::from_str(&format!("virtctl/{VERSION}")).context("our own version")?;
        config.headers.push((USER_AGENT, own_name));
        config.read_timeout = self.flags.request_timeout.filter(|timeout| *timeout > Duration::ZERO);
        Ok(config)
    }

    /// A pod reaches its own cluster without a file, and flags count there as well.
    fn of_pod(&self) -> Result<Kubeconfig> {
        let nowhere = || {
            Failure::new(
                "no Kubernetes cluster is configured",
                "Name a kubeconfig with --kubeconfig or KUBECONFIG, or an API server with --server.",
            )
        };
        let own = Config::incluster().map_err(|_| nowhere())?;
        let one = kubeconfig::effective(kubeconfig::of_pod(&own), &self.flags).map_err(unreadable)?;
        Ok(one.ok_or_else(nowhere)?)
    }
}

fn unreadable(error: kubeconfig::Error) -> anyhow::Error {
    let next =
        "See `kubectl config view`; --kubeconfig, --context, --cluster and --user choose what is used.";
    Failure::new(error.to_string(), next).into()
}

impl Session {
    fn open(config: Config) -> Result<Self> {
        let namespace = config.default_namespace.clone();
        let patient = config.read_timeout.map(|_| {
            let mut patient = config.clone();
            patient.read_timeout = None;
            patient
        });
        let client = Client::try_from(config).context("the cluster's configuration cannot be used")?;
        let patient = match patient {
            Some(config) => Client::try_from(config).context("the cluster's configuration cannot be used")?,
            None => client.clone(),
        };
        Ok(Self { client, namespace, patient })
    }

    /// Objects of a namespace: the one that is given, or the session's.
    pub fn api<K>(&self, namespace: Option<&str>) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), namespace.unwrap_or(&self.namespace))
    }
}
