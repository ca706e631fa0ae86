//! From when to when a certificate is good, read from itself.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// When a certificate is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From then on.
    pub not_before: Timestamp,
    /// Until then.
    pub not_after: Timestamp,
}

impl Validity {
    /// That of the first certificate in a PEM text.
    pub fn of(pem: &str) -> Option<Self> {
        let (_, rest) = pem.split_once("-----BEGIN CERTIFICATE-----")?;
        let (body, _) = rest.split_once("-----END CERTIFICATE-----")?;
        let body: String = body.split_whitespace().collect();
        Self::of_der(&STANDARD.decode(body).ok()?)
    }

    fn of_der(der: &[u8]) -> Option<Self> {
        let certificate = Elements(der).next()?;
        let signed = Elements(certificate.content).next()?;
        // The version may be left out; a number, the algorithm and the issuer come before the times.
        let mut fields = Elements(signed.content).skip_while(|element| element.tag == VERSION);
        let times = fields.nth(3)?;
        let mut times = Elements(times.content).map(|element| time(&element));
        Some(Self { not_before: times.next()??, not_after: times.next()?? })
    }

    /// Whether the certificate should be replaced: in the last fifth of its life, and ever after.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let life = self.not_after.duration_since(self.not_before);
        now >= self.not_after.checked_sub(life / 5).unwrap_or(self.not_before)
    }
}

const VERSION: u8 = 0xa0;
const SHORT_TIME: u8 = 0x17;
const LONG_TIME: u8 = 0x18;

fn time(element: &Element<'_>) -> Option<Timestamp> {
    let text = std::str::from_utf8(element.content).ok()?;
    let text = match element.tag {
        // Two digits of a year mean 1950 to 2049.
        SHORT_TIME if text < "50" => format!("20{text}"),
        SHORT_TIME => format!("19{text}"),
        LONG_TIME => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    TimeZone::UTC.to_timestamp(time).ok()
}

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

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn reads_both_ways_to_write_a_time() {
        let element = |tag, text: &'static str| Element { tag, content: text.as_bytes() };
        let cases = [
            (SHORT_TIME, "260102030405Z", Some("2026-01-02T03:04:05Z")),
            (SHORT_TIME, "500102030405Z", Some("1950-01-02T03:04:05Z")),
            (LONG_TIME, "20510102030405Z", Some("2051-01-02T03:04:05Z")),
            (LONG_TIME, "never", None),
            (0x02, "260102030405Z", None),
        ];
        for (tag, text, expected) in cases {
            assert_eq!(time(&element(tag, text)), expected.map(at), "{text}");
        }
    }

    #[test]
    fn a_certificate_is_due_in_the_last_fifth() {
        let validity =
            Validity { not_before: at("2026-01-01T00:00:00Z"), not_after: at("2026-01-11T00:00:00Z") };
        assert!(!validity.is_due(at("2026-01-08T23:59:59Z")));
        assert!(validity.is_due(at("2026-01-09T00:00:00Z")));
        assert!(validity.is_due(at("2027-01-01T00:00:00Z")));
    }

    proptest! {
        #[test]
        fn anything_may_be_read(bytes: Vec<u8>) {
            let _ = Validity::of_der(&bytes);
        }
    }
}
