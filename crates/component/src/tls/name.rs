//! Whom a certificate is for.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
/// The identifier of common names, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// Kinds of text that are UTF-8 as they stand: UTF8String, PrintableString, IA5String.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];

/// The common name of a certificate's subject; none if it has none, or more than one.
pub fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    // The library that verifies certificates reads this one too, so both read the same subject.
    let mut reader = RootCertStore::empty();
    reader.add(certificate.clone().into_owned()).ok()?;
    of_subject(&reader.roots.first()?.subject)
}

/// A subject is a run of sets of pairs, each of what it is and its text.
fn of_subject(subject: &[u8]) -> Option<String> {
    let mut found = None;
    let mut sets = Elements(subject);
    while let Some(set) = sets.next(SET)? {
        let mut pairs = Elements(set.content);
        while let Some(pair) = pairs.next(SEQUENCE)? {
            let mut parts = Elements(pair.content);
            let kind = parts.next(OBJECT_ID)??;
            let text = parts.any()??;
            if kind.content != COMMON_NAME {
                continue;
            }
            let name = TEXTS.contains(&text.tag).then(|| std::str::from_utf8(text.content).ok())??;
            if found.replace(name.to_owned()).is_some() {
                return None;
            }
        }
    }
    found
}

struct Element<'a> {
    tag: u8,
    content: &'a [u8],
}

/// What is left of a run of elements: each a tag, a length and so many bytes.
struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    /// The next element, or nothing at the end; outer none if what follows is no element.
    fn any(&mut self) -> Option<Option<Element<'a>>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let (&[tag, first], rest) = self.0.split_first_chunk::<2>()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81 => (usize::from(*rest.first()?), &rest[1..]),
            0x82 => {
                let (&[high, low], rest) = rest.split_first_chunk::<2>()?;
                (usize::from(high) << 8 | usize::from(low), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(Some(Element { tag, content }))
    }

    /// The same, of this kind only.
    fn next(&mut self, tag: u8) -> Option<Option<Element<'a>>> {
        match self.any()? {
            Some(element) if element.tag != tag => None,
            other => Some(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn named(parts: &[(DnType, &str)]) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, text) in parts {
            params.distinguished_name.push(kind.clone(), *text);
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    #[test]
    fn the_common_name_is_found_among_others() {
        let long = "x".repeat(300);
        for name in ["kubevirt.io:system:client:virt-handler", "ä", "", &long] {
            let alone = named(&[(DnType::CommonName, name)]);
            assert_eq!(common_name(&alone).as_deref(), Some(name));
            let among = named(&[
                (DnType::OrganizationName, "o"),
                (DnType::CommonName, name),
                (DnType::CountryName, "DE"),
            ]);
            assert_eq!(common_name(&among).as_deref(), Some(name));
        }
        assert_eq!(common_name(&named(&[(DnType::OrganizationName, "kubevirt.io")])), None);
        assert_eq!(common_name(&CertificateDer::from(b"nonsense".to_vec())), None);
    }

    #[test]
    fn two_names_are_none() {
        let pair = [&[0x31, 0x0a, 0x30, 0x08, 0x06, 0x03][..], COMMON_NAME, &[0x0c, 0x01, b'a']].concat();
        assert_eq!(of_subject(&pair).as_deref(), Some("a"));
        assert_eq!(of_subject(&[&pair[..], &pair].concat()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = of_subject(&bytes);
        }
    }
}
