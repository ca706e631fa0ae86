//! The authority of an installation and the certificates that it issues.

mod issue;
mod validity;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kubevirt_api::names::components::{self, certificate_names, secrets, services};

pub use validity::Validity;

/// A certificate and its private key, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

/// The certificates of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// The authority.
    pub authority: Pair,
    /// What it issued, by the secret that holds it.
    pub issued: BTreeMap<String, Pair>,
    /// How long what is issued now is valid.
    pub lifetimes: Lifetimes,
}

/// How long certificates are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// The authority.
    pub authority: SignedDuration,
    /// What it issues.
    pub issued: SignedDuration,
}

impl Default for Lifetimes {
    /// For certificates that an operator rotates.
    fn default() -> Self {
        Self { authority: SignedDuration::from_hours(7 * 24), issued: SignedDuration::from_hours(24) }
    }
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It could not be made.
    #[error("cannot issue the certificate of {secret}")]
    Issue {
        /// Whose.
        secret: String,
        /// Why.
        source: rcgen::Error,
    },
    /// It cannot be read.
    #[error("cannot read the certificate of {secret}")]
    Unreadable {
        /// Whose.
        secret: String,
    },
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// For a server, which answers to the names of a Service.
    Server {
        /// The Service, which need not exist.
        service: &'static str,
    },
    /// For a client.
    Client,
}

/// A certificate that every installation has.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The secret that holds it.
    pub secret: &'static str,
    /// Its common name; a server without one is called by its Service.
    pub common_name: Option<&'static str>,
    /// What it is for.
    pub usage: Usage,
}

/// All certificates but the authority's own.
pub const SUBJECTS: [Subject; 8] = [
    server(secrets::API, None, components::API),
    server(secrets::CONTROLLER, None, components::CONTROLLER),
    server(secrets::OPERATOR, None, services::OPERATOR_WEBHOOK),
    server(secrets::HANDLER_SERVER, Some(certificate_names::HANDLER_SERVER), components::HANDLER),
    client(secrets::HANDLER_CLIENT, certificate_names::HANDLER_CLIENT),
    client(secrets::HANDLER_MIGRATION_CLIENT, certificate_names::MIGRATION_CLIENT),
    client(secrets::HANDLER_VSOCK_CLIENT, certificate_names::VSOCK_CLIENT),
    client(secrets::HANDLER_MONITORING_CLIENT, certificate_names::MONITORING_CLIENT),
];

const fn server(secret: &'static str, common_name: Option<&'static str>, service: &'static str) -> Subject {
    Subject { secret, common_name, usage: Usage::Server { service } }
}

const fn client(secret: &'static str, common_name: &'static str) -> Subject {
    Subject { secret, common_name: Some(common_name), usage: Usage::Client }
}

impl Certificates {
    /// An authority and all certificates for the components in a namespace.
    pub fn issue(namespace: &str, lifetimes: Lifetimes, now: Timestamp) -> Result<Self, CertificateError> {
        let authority = issue::authority(lifetimes.authority, now)?;
        Self::complete(namespace, authority, BTreeMap::new(), lifetimes, now)
    }

    /// Keeps what is given and still good, and issues the rest. Without an authority that is still good, that is
    /// everything.
    pub fn renew(
        namespace: &str,
        mut kept: BTreeMap<String, Pair>,
        lifetimes: Lifetimes,
        now: Timestamp,
    ) -> Result<Self, CertificateError> {
        for (secret, pair) in &kept {
            if Validity::of(&pair.certificate).is_none() {
                return Err(CertificateError::Unreadable { secret: secret.clone() });
            }
        }
        kept.retain(|_, pair| Validity::of(&pair.certificate).is_some_and(|validity| !validity.is_due(now)));
        match kept.remove(secrets::CA) {
            Some(authority) => Self::complete(namespace, authority, kept, lifetimes, now),
            None => Self::issue(namespace, lifetimes, now),
        }
    }

    fn complete(
        namespace: &str,
        authority: Pair,
        mut issued: BTreeMap<String, Pair>,
        lifetimes: Lifetimes,
        now: Timestamp,
    ) -> Result<Self, CertificateError> {
        issued.retain(|secret, _| SUBJECTS.iter().any(|subject| subject.secret == secret));
        for subject in
            SUBJECTS.iter().filter(|subject| !issued.contains_key(subject.secret)).collect::<Vec<_>>()
        {
            let pair = issue::issued(namespace, subject, &authority, lifetimes.issued, now)?;
            issued.insert(subject.secret.to_owned(), pair);
        }
        Ok(Self { authority, issued, lifetimes })
    }

    /// Every pair with the secret that holds it, the authority first.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &Pair)> {
        let issued = self.issued.iter().map(|(secret, pair)| (secret.as_str(), pair));
        std::iter::once((secrets::CA, &self.authority)).chain(issued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn after(hours: i64) -> Timestamp {
        now() + SignedDuration::from_hours(hours)
    }

    fn kept(certificates: &Certificates) -> BTreeMap<String, Pair> {
        certificates.pairs().map(|(secret, pair)| (secret.to_owned(), pair.clone())).collect()
    }

    #[test]
    fn everyone_gets_a_certificate_for_the_time_it_is_due() {
        let certificates = Certificates::issue("kubevirt", Lifetimes::default(), now()).unwrap();
        assert_eq!(certificates.pairs().count(), SUBJECTS.len() + 1);
        for (secret, pair) in certificates.pairs() {
            let hours = if secret == secrets::CA { 7 * 24 } else { 24 };
            let validity = Validity::of(&pair.certificate).unwrap();
            assert_eq!(validity.not_after, after(hours), "{secret}");
            assert!(validity.not_before <= now(), "{secret}");
        }
    }

    #[test]
    fn what_is_still_good_is_kept() {
        let first = Certificates::issue("kubevirt", Lifetimes::default(), now()).unwrap();
        let again = |kept, at| Certificates::renew("kubevirt", kept, Lifetimes::default(), at).unwrap();
        assert_eq!(again(kept(&first), after(19)), first, "before the last fifth");

        let leaves = again(kept(&first), after(20));
        assert_eq!(leaves.authority, first.authority);
        assert!(leaves.issued.iter().all(|(secret, pair)| *pair != first.issued[secret]));

        let all = again(kept(&leaves), after(6 * 24));
        assert_ne!(all.authority, first.authority);
        assert!(all.issued.iter().all(|(secret, pair)| *pair != leaves.issued[secret]));

        let mut some = kept(&first);
        some.remove(secrets::API);
        some.insert("somebody-elses".into(), first.authority.clone());
        let completed = again(some, after(1));
        assert_eq!(completed.issued.len(), SUBJECTS.len());
        assert_ne!(completed.issued[secrets::API], first.issued[secrets::API]);
        assert_eq!(completed.issued[secrets::CONTROLLER], first.issued[secrets::CONTROLLER]);
    }

    #[test]
    fn what_cannot_be_read_is_not_replaced_silently() {
        let broken = Pair { certificate: "no certificate".into(), key: String::new() };
        let kept = BTreeMap::from([(secrets::CA.to_owned(), broken)]);
        let error = Certificates::renew("kubevirt", kept, Lifetimes::default(), now()).unwrap_err();
        assert_eq!(error.to_string(), "cannot read the certificate of kubevirt-ca");
    }
}
