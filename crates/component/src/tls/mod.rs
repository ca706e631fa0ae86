//! TLS of a server whose certificates change while it runs.
//!
//! Files are looked at every few seconds, by what they are and not by when: a mounted Secret is a link that is
//! replaced. A new certificate holds for new connections and leaves open ones alone; one that cannot be used, such as
//! a certificate without its key, is left until it can.

mod name;
mod policy;
mod source;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use name::common_name;
pub use policy::Policy;
use source::Seen;

/// How often files are looked at.
const PERIOD: Duration = Duration::from_secs(5);

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The certificate and those between it and its authority, as PEM.
    pub certificate: PathBuf,
    /// Its key, as PEM.
    pub key: PathBuf,
}

impl Files {
    /// What they hold: the certificate with those that vouch for it, and the key.
    pub fn read(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), NotUsable> {
        let certificate = source::read(&self.certificate)?;
        let chain = certificates(&self.certificate.display().to_string(), &certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&source::read(&self.key)?)
            .map_err(|error| NotUsable::Pem(self.key.display().to_string(), error))?;
        Ok((chain, key))
    }
}

/// Whom clients' certificates must be from.
#[derive(Clone, Debug)]
pub struct Clients {
    /// The authorities.
    pub authorities: Authorities,
    /// Whether clients without a certificate are refused.
    pub required: bool,
}

/// Certificates of authorities, as PEM.
#[derive(Clone, Debug)]
pub enum Authorities {
    /// In a file.
    File(PathBuf),
    /// From elsewhere, such as a ConfigMap that is watched. As long as there are none, no client is believed.
    Live(watch::Receiver<String>),
}

/// The certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NotUsable {
    /// A file cannot be read.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] std::io::Error),
    /// What it holds is not PEM.
    #[error("{0}: {1}")]
    Pem(String, #[source] rustls::pki_types::pem::Error),
    /// There is no certificate in it.
    #[error("{0} holds no certificate")]
    Empty(String),
    /// The certificate and its key do not belong together, or are not understood.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// The authorities of clients are not understood.
    #[error("authorities of clients: {0}")]
    Clients(#[from] rustls::server::VerifierBuilderError),
}

/// The certificates of a server, always the latest.
#[derive(Clone, Debug)]
pub struct Tls {
    current: watch::Receiver<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the certificates, and reads them again whenever they change until `stop`.
    pub fn follow(
        files: Files,
        clients: Option<Clients>,
        policy: watch::Receiver<Policy>,
        stop: &CancellationToken,
    ) -> Result<Self, NotUsable> {
        Self::follow_every(PERIOD, files, clients, policy, stop)
    }

    fn follow_every(
        period: Duration,
        files: Files,
        clients: Option<Clients>,
        policy: watch::Receiver<Policy>,
        stop: &CancellationToken,
    ) -> Result<Self, NotUsable> {
        let mut source = Source { files, clients, policy };
        let seen = source.seen();
        let (sender, current) = watch::channel(Arc::new(source.load()?));
        let stop = stop.clone();
        tokio::spawn(async move {
            stop.run_until_cancelled(keep(source, seen, sender, period)).await;
        });
        Ok(Self { current })
    }

    /// What holds for a new connection.
    pub fn now(&self) -> Arc<ServerConfig> {
        self.current.borrow().clone()
    }
}

/// Looks for changes and passes them on.
async fn keep(
    mut source: Source,
    mut used: Seen,
    sender: watch::Sender<Arc<ServerConfig>>,
    period: Duration,
) {
    let mut refused = None;
    loop {
        source.wait(period).await;
        let seen = source.seen();
        if seen == used {
            continue;
        }
        match source.load() {
            Ok(config) => {
                tracing::info!(file = %source.files.certificate.display(), "using new certificates");
                sender.send_replace(Arc::new(config));
                (used, refused) = (seen, None);
            }
            // Said once for each state of the files: they may be in the middle of a change.
            Err(error) if refused.as_ref() != Some(&seen) => {
                tracing::warn!("keeping the old certificates, since the new ones cannot be used: {error}");
                refused = Some(seen);
            }
            Err(_) => {}
        }
    }
}

/// All that a configuration is made of.
struct Source {
    files: Files,
    clients: Option<Clients>,
    policy: watch::Receiver<Policy>,
}

impl Source {
    /// Waits a while, or until something is pushed.
    async fn wait(&mut self, period: Duration) {
        let live = match &mut self.clients {
            Some(Clients { authorities: Authorities::Live(live), .. }) => Some(live),
            _ => None,
        };
        tokio::select! {
            () = tokio::time::sleep(period) => {}
            () = changed(Some(&mut self.policy)) => {}
            () = changed(live) => {}
        }
    }

    fn seen(&mut self) -> Seen {
        let mut seen = Seen::default();
        seen.file(&self.files.certificate);
        seen.file(&self.files.key);
        seen.policy = self.policy.borrow_and_update().clone();
        match self.clients.as_mut().map(|clients| &mut clients.authorities) {
            Some(Authorities::File(path)) => seen.file(path),
            Some(Authorities::Live(live)) => seen.authorities = live.borrow_and_update().clone(),
            None => {}
        }
        seen
    }

    fn load(&self) -> Result<ServerConfig, NotUsable> {
        let (provider, versions) = self.policy.borrow().apply();
        let (chain, key) = self.files.read()?;
        let builder =
            ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(&versions)?;
        let builder = match &self.clients {
            Some(clients) => match verifier(clients, provider)? {
                Some(verifier) => builder.with_client_cert_verifier(verifier),
                None => builder.with_no_client_auth(),
            },
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Waits until something new is there; forever if nothing can come any more.
async fn changed<T>(receiver: Option<&mut watch::Receiver<T>>) {
    if let Some(receiver) = receiver
        && receiver.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// What judges clients' certificates; nothing as long as no authority is known and none is required.
fn verifier(
    clients: &Clients,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, NotUsable> {
    let (name, text) = match &clients.authorities {
        Authorities::File(path) => (path.display().to_string(), source::read(path)?),
        Authorities::Live(live) => ("the authorities of clients".to_owned(), live.borrow().clone().into()),
    };
    if text.is_empty() && !clients.required {
        return Ok(None);
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(&name, &text)?);
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = if clients.required { builder } else { builder.allow_unauthenticated() };
    Ok(Some(builder.build()?))
}

fn certificates(name: &str, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, NotUsable> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let chain = chain.map_err(|error| NotUsable::Pem(name.to_owned(), error))?;
    if chain.is_empty() { Err(NotUsable::Empty(name.to_owned())) } else { Ok(chain) }
}

#[cfg(test)]
pub(crate) mod tests;
