//! Which servers are believed.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Whom to believe.
#[derive(Clone, Debug)]
pub enum Trust {
    /// The authorities of this system.
    System,
    /// These certificates only, as PEM, and what they have signed.
    Authorities(String),
    /// Whoever answers.
    Anyone,
}

impl Trust {
    /// What a client needs to know; in words if it cannot be.
    pub(super) fn config(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let known = match self {
            Self::System => return Ok(builder.with_root_certificates(system()).with_no_client_auth()),
            Self::Authorities(pem) => Known::these(pem, &provider)?,
            Self::Anyone => Known::Anyone,
        };
        let verifier = Arc::new(Verifier { known, provider });
        Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
    }
}

/// The authorities of this system; a system without any trusts nobody.
fn system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Who is known.
#[derive(Debug)]
enum Known {
    Anyone,
    These { certificates: Vec<CertificateDer<'static>>, signed: Option<Arc<WebPkiServerVerifier>> },
}

impl Known {
    fn these(pem: &str, provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| format!("{error:?}"))?;
        if certificates.is_empty() {
            return Err("there is no certificate in it".into());
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        Ok(Self::These { certificates, signed: signed.build().ok() })
    }
}

/// Believes who is known. A server's own certificate is no authority, so that the usual verifier would not take it.
#[derive(Debug)]
struct Verifier {
    known: Known,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.known {
            Known::Anyone => Ok(ServerCertVerified::assertion()),
            Known::These { certificates, .. } if certificates.iter().any(|known| known == certificate) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            Known::These { signed: Some(signed), .. } => {
                signed.verify_server_cert(certificate, between, name, stapled, now)
            }
            Known::These { signed: None, .. } => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use http::{HeaderMap, Method};
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::super::client::Client;
    use super::*;

    /// The name that certificates are for.
    const NAME: &str = "export.example";

    fn params(name: &str) -> CertificateParams {
        CertificateParams::new(vec![name.to_owned()]).unwrap()
    }

    fn authority() -> CertifiedIssuer<'static, KeyPair> {
        let mut params = params("authority.example");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    /// A server that says yes, behind this certificate.
    async fn server(certificate: CertificateDer<'static>, key: &KeyPair) -> SocketAddr {
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(stream) = acceptor.accept(stream).await else { continue };
                let yes = service_fn(|_| async {
                    Ok::<_, std::convert::Infallible>(http::Response::new("yes".to_owned()))
                });
                let connection = hyper::server::conn::http1::Builder::new();
                tokio::spawn(
                    async move { drop(connection.serve_connection(TokioIo::new(stream), yes).await) },
                );
            }
        });
        address
    }

    /// Whether a server at this address is believed to be the one of this name.
    async fn believed(address: SocketAddr, name: &str, trust: Trust) -> bool {
        let client = Client::new(&trust).unwrap().via(address);
        let uri = format!("https://{name}/").parse().unwrap();
        client.ask(Method::GET, &uri, &HeaderMap::new()).await.is_ok()
    }

    #[tokio::test]
    async fn who_is_signed_by_a_known_authority_is_believed() {
        let (known, other) = (authority(), authority());
        let key = KeyPair::generate().unwrap();
        let certificate = params(NAME).signed_by(&key, &known).unwrap();
        let address = server(certificate.der().clone(), &key).await;
        let pem = |authority: &CertifiedIssuer<'_, KeyPair>| Trust::Authorities(authority.pem());
        assert!(believed(address, NAME, pem(&known)).await);
        assert!(!believed(address, "other.example", pem(&known)).await);
        assert!(!believed(address, NAME, pem(&other)).await);
        assert!(!believed(address, NAME, Trust::System).await);
        assert!(believed(address, "other.example", Trust::Anyone).await);
        // The certificate itself is as good as its authority.
        assert!(believed(address, NAME, Trust::Authorities(certificate.pem())).await);
        assert!(!believed(address, "other.example", Trust::Authorities(certificate.pem())).await);
    }

    #[tokio::test]
    async fn a_certificate_that_signed_itself_can_be_known() {
        for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
            let mut params = params(NAME);
            params.is_ca = is_ca;
            let key = KeyPair::generate().unwrap();
            let certificate = params.self_signed(&key).unwrap();
            let address = server(certificate.der().clone(), &key).await;
            assert!(believed(address, NAME, Trust::Authorities(certificate.pem())).await);
            assert!(!believed(address, NAME, Trust::Authorities(authority().pem())).await);
        }
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        assert_eq!(
            Trust::Authorities("nothing".into()).config().unwrap_err(),
            "there is no certificate in it"
        );
        assert!(Trust::System.config().is_ok());
    }
}
