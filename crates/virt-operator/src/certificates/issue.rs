//! Making keys and signing certificates.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kubevirt_api::names::components::{certificate_names, secrets};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};

use super::{CertificateError, Pair, Subject, Usage};

/// Clocks of nodes differ a little.
const SLACK: SignedDuration = SignedDuration::from_mins(5);

/// A new authority.
pub(super) fn authority(lifetime: SignedDuration, now: Timestamp) -> Result<Pair, CertificateError> {
    let make = || {
        let key = KeyPair::generate()?;
        let certificate = authority_params(lifetime, now).self_signed(&key)?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
    };
    make().map_err(failed(secrets::CA))
}

/// A new certificate for a subject.
pub(super) fn issued(
    namespace: &str,
    subject: &Subject,
    authority: &Pair,
    lifetime: SignedDuration,
    now: Timestamp,
) -> Result<Pair, CertificateError> {
    let make = || {
        // A signature needs the authority's name and key, not its certificate.
        let issuer = Issuer::new(authority_params(lifetime, now), KeyPair::from_pem(&authority.key)?);
        let mut params = CertificateParams::new(hosts(namespace, subject.usage))?;
        params.distinguished_name = named(&common_name(namespace, subject));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![match subject.usage {
            Usage::Server { .. } => ExtendedKeyUsagePurpose::ServerAuth,
            Usage::Client => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        params.use_authority_key_identifier_extension = true;
        valid(&mut params, lifetime, now);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
    };
    make().map_err(failed(subject.secret))
}

fn failed(secret: &str) -> impl FnOnce(rcgen::Error) -> CertificateError {
    move |source| CertificateError::Issue { secret: secret.to_owned(), source }
}

fn authority_params(lifetime: SignedDuration, now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(certificate_names::CA);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    valid(&mut params, lifetime, now);
    params
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

fn common_name(namespace: &str, subject: &Subject) -> String {
    match (subject.common_name, subject.usage) {
        (Some(name), _) => name.to_owned(),
        (None, Usage::Server { service }) => certificate_names::of_service(service, namespace),
        (None, Usage::Client) => subject.secret.to_owned(),
    }
}

/// The names that clients in the cluster know a Service by.
fn hosts(namespace: &str, usage: Usage) -> Vec<String> {
    match usage {
        Usage::Client => Vec::new(),
        Usage::Server { service } => vec![
            service.to_owned(),
            format!("{service}.{namespace}"),
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
        ],
    }
}

fn valid(params: &mut CertificateParams, lifetime: SignedDuration, now: Timestamp) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let at =
        |time: Timestamp| epoch + Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default());
    params.not_before = at(now.checked_sub(SLACK).unwrap_or(now));
    params.not_after = at(now.checked_add(lifetime).unwrap_or(Timestamp::MAX));
}
