//! Which servers are believed to be components of the installation.

use kubevirt_component::tls::common_name;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Nobody can be believed.
#[derive(Debug, thiserror::Error)]
#[error("the authorities of the installation are not known yet")]
pub struct NoAuthority;

/// Believes pods of a component: their certificates are for no address, but have one name for all.
#[derive(Debug)]
pub struct Component {
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
    /// The common name; any, where somebody else makes the certificates.
    name: Option<String>,
}

impl Component {
    /// Believes who has a certificate of this name from these authorities, which are PEM.
    pub fn new(
        authorities: &str,
        name: Option<String>,
        provider: &CryptoProvider,
    ) -> Result<Self, NoAuthority> {
        let mut roots = RootCertStore::empty();
        let all = CertificateDer::pem_slice_iter(authorities.as_bytes());
        roots.add_parsable_certificates(all.filter_map(Result::ok));
        let algorithms = provider.signature_verification_algorithms;
        if roots.is_empty() { Err(NoAuthority) } else { Ok(Self { roots, algorithms, name }) }
    }
}

impl ServerCertVerifier for Component {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let parsed = ParsedCertificate::try_from(leaf)?;
        // Our own authority signs by itself.
        let between = if self.name.is_none() { between } else { &[] };
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, between, now, self.algorithms.all)?;
        if self.name.is_none() || common_name(leaf) == self.name {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::NotValidForName.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, leaf, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, leaf, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
