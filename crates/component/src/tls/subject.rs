//! Whom a certificate is for, read from itself.

/// The common name of the subject of a certificate in DER; none if it has none or is not a certificate.
///
/// Whether to believe it is for others to say: nothing is verified here.
pub fn common_name(certificate: &[u8]) -> Option<String> {
    let certificate = Elements(certificate).next()?;
    let signed = Elements(certificate.content).next()?;
    // The version may be left out; then come a number, the algorithm, the issuer and the times.
    let mut fields = Elements(signed.content).skip_while(|field| field.tag == VERSION);
    let subject = fields.nth(4)?;
    let sets = Elements(subject.content).flat_map(|set| Elements(set.content));
    let mut names = sets.filter_map(|pair| {
        let mut pair = Elements(pair.content);
        let (kind, value) = (pair.next()?, pair.next()?);
        (kind.tag == OBJECT_ID && kind.content == COMMON_NAME).then_some(value)
    });
    // The last one counts, as in Go.
    let name = names.by_ref().last()?;
    TEXTS.contains(&name.tag).then(|| std::str::from_utf8(name.content).ok().map(str::to_owned))?
}

const VERSION: u8 = 0xa0;
const OBJECT_ID: u8 = 0x06;
/// 2.5.4.3
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// UTF-8, printable and IA5 text, all of which read as UTF-8.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];

struct Element<'a> {
    tag: u8,
    content: &'a [u8],
}

/// The elements of a run of DER: a tag, a length and so many bytes.
struct Elements<'a>(&'a [u8]);

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let (&[tag, first], rest) = self.0.split_first_chunk::<2>()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(Element { tag, content })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn named(name: Option<&str>) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["host.example".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "somebody");
        if let Some(name) = name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn the_name_is_the_subjects() {
        let name = "kubevirt.io:system:node:virt-handler";
        assert_eq!(common_name(&named(Some(name))).as_deref(), Some(name));
        assert_eq!(common_name(&named(None)), None);
    }

    proptest! {
        #[test]
        fn anything_else_has_no_name(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = common_name(&bytes);
        }

        #[test]
        fn a_broken_certificate_does_no_harm(at in 0_usize..400, byte in any::<u8>()) {
            let mut certificate = named(Some("a"));
            if let Some(place) = certificate.get_mut(at) {
                *place = byte;
            }
            let _ = common_name(&certificate);
            let _ = common_name(&certificate[..at.min(certificate.len())]);
        }
    }
}
