//! TLS towards guests: they must know who we are, and we know them by their address.

use std::sync::Arc;

use kubevirt_component::tls::{Files, NotUsable};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{ClientConfig, DigitallySignedStruct, Error, PeerIncompatible, SignatureScheme};

/// The files are read each time: they may be new.
pub(super) fn config(own: &Files) -> Result<ClientConfig, NotUsable> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let (chain, key) = own.read()?;
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_protocol_versions(&[&TLS13])?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyGuest(provider)));
    Ok(builder.with_client_auth_cert(chain, key)?)
}

/// Takes any certificate whose key the other side has.
#[derive(Debug)]
struct AnyGuest(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyGuest {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use rustls::pki_types::PrivatePkcs8KeyDer;
    use rustls::server::WebPkiClientVerifier;
    use rustls::{RootCertStore, ServerConfig};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::server::vsock::secure;
    use crate::testing::Folder;

    #[tokio::test]
    async fn a_guest_that_nobody_vouches_for_knows_us_by_our_certificate() {
        let folder = Folder::new();
        let own = Files { certificate: folder.path().join("tls.crt"), key: folder.path().join("tls.key") };
        let (near, far) = UnixStream::pair().unwrap();
        assert!(secure(near, &own).await.is_err(), "there is no certificate yet");
        drop(far);

        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let mut roots = RootCertStore::empty();
        roots.add(authority.self_signed(&authority_key).unwrap().der().clone()).unwrap();
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let certificate = CertificateParams::default().signed_by(&key, &issuer).unwrap();
        std::fs::write(&own.certificate, certificate.pem()).unwrap();
        std::fs::write(&own.key, key.serialize_pem()).unwrap();

        let guest_key = KeyPair::generate().unwrap();
        let guest = CertificateParams::default().self_signed(&guest_key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
        let server = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13]).unwrap();
        let server = server.with_client_cert_verifier(verifier);
        let key = PrivatePkcs8KeyDer::from(guest_key.serialize_der()).into();
        let server = server.with_single_cert(vec![guest.der().clone()], key).unwrap();

        let (near, far) = UnixStream::pair().unwrap();
        let accepting = TlsAcceptor::from(Arc::new(server)).accept(far);
        let (ours, theirs) = tokio::join!(secure(near, &own), accepting);
        let (mut ours, mut theirs) = (ours.unwrap(), theirs.unwrap());
        assert_eq!(theirs.get_ref().1.peer_certificates().unwrap()[0], *certificate.der());
        ours.write_all(b"hello").await.unwrap();
        ours.flush().await.unwrap();
        let mut heard = [0; 5];
        theirs.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"hello");
    }
}
