//! SHA-256 of what passes by.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use ring::digest::{Context, SHA256};

/// A checksum in the making.
#[derive(Clone)]
pub struct Checksum(Context);

impl Default for Checksum {
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl Checksum {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of what there was so far, as `sha256sum` writes it.
    pub fn hex(&self) -> String {
        self.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The checksum of what there was so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.clone().finish().as_ref().to_vec()
    }
}

/// The checksum that a server gives of the whole file (`Repr-Digest`, or `Digest` of older ones).
pub fn promised(headers: &HeaderMap) -> Option<Vec<u8>> {
    let values = ["repr-digest", "digest"].into_iter().flat_map(|name| headers.get_all(name));
    let items = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    items.into_iter().find_map(|item| {
        let (algorithm, value) = item.trim().split_once('=')?;
        let value = value.strip_prefix(':').and_then(|value| value.strip_suffix(':')).unwrap_or(value);
        algorithm.eq_ignore_ascii_case("sha-256").then(|| STANDARD.decode(value).ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_checksum_is_that_of_the_tool() {
        let mut checksum = Checksum::default();
        assert_eq!(checksum.hex(), EMPTY);
        checksum.update(b"ab");
        checksum.update(b"c");
        assert_eq!(checksum.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn promises_are_read_from_headers() {
        let encoded = STANDARD.encode(Checksum::default().bytes());
        for (name, value, found) in [
            ("repr-digest", format!("sha-256=:{encoded}:"), true),
            ("repr-digest", format!("md5=:AAAA:, SHA-256=:{encoded}:"), true),
            ("digest", format!("SHA-256={encoded}"), true),
            ("repr-digest", "sha-512=:AAAA:".to_owned(), false),
            ("repr-digest", "sha-256=:not base64:".to_owned(), false),
            ("other", format!("sha-256=:{encoded}:"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(promised(&headers).is_some(), found, "{value}");
        }
    }
}
