//! What a guest asks on the channel.

/// The longest request that is listened to.
const LONGEST: usize = 4096;

/// The only thing that can be asked for.
const METRICS: &str = "/metrics/XML";

/// What a guest asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// All metrics.
    Metrics,
    /// Something that nobody knows.
    Unknown,
}

/// What a guest said, until it is a request: a line, and an empty one.
#[derive(Debug, Default)]
pub struct Said(Vec<u8>);

impl Said {
    /// Listens on.
    pub fn hear(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next request, once it is whole. After words that are no request, the rest of what was said is not one either.
    pub fn request(&mut self) -> Option<Request> {
        let Some((first, rest)) = line(&self.0) else { return self.unless_endless() };
        let Some((second, rest)) = line(rest) else { return self.unless_endless() };
        if !second.is_empty() {
            self.0.clear();
            return Some(Request::Unknown);
        }
        let request = parse(first);
        self.0 = rest.to_vec();
        Some(request)
    }

    fn unless_endless(&mut self) -> Option<Request> {
        if self.0.len() <= LONGEST {
            return None;
        }
        self.0.clear();
        Some(Request::Unknown)
    }
}

/// The first line without its end, and what follows.
fn line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let (line, rest) = (&text[..end], &text[end + 1..]);
    Some((line.strip_suffix(b"\r").unwrap_or(line), rest))
}

fn parse(line: &[u8]) -> Request {
    let target = line.strip_prefix(b"GET ").unwrap_or_default();
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    if path == METRICS.as_bytes() { Request::Metrics } else { Request::Unknown }
}

#[cfg(test)]
mod tests {
    use super::Request::{Metrics, Unknown};
    use super::*;

    #[test]
    fn requests_are_told_from_other_words() {
        for (text, expected) in [
            ("GET /metrics/XML\n\n", vec![Metrics]),
            ("GET /metrics/XML\r\n\r\n", vec![Metrics]),
            ("GET /metrics/XML?all\n\n", vec![Metrics]),
            ("GET /metrics/XML\n\nGET /metrics/XML\n\n", vec![Metrics, Metrics]),
            ("GET /metrics/XML\n\nGET /met", vec![Metrics]),
            ("", vec![]),
            ("GET /metrics/XML", vec![]),
            ("GET /metrics/XML\n", vec![]),
            ("GET /metrics/XML\nHost: a", vec![]),
            ("GET /metrics/XML\nHost: a\n\n", vec![Unknown]),
            ("GET /metrics/XML HTTP/1.1\n\n", vec![Unknown]),
            ("GET  /metrics/XML\n\n", vec![Unknown]),
            ("GET /metrics/XML/\n\n", vec![Unknown]),
            ("GET /metrics\n\n", vec![Unknown]),
            ("GET metrics/XML\n\n", vec![Unknown]),
            ("get /metrics/XML\n\n", vec![Unknown]),
            ("PUT /metrics/XML\n\n", vec![Unknown]),
            ("GET\n\n", vec![Unknown]),
            ("\n\n", vec![Unknown]),
            ("\n\nGET /metrics/XML\n\n", vec![Unknown, Metrics]),
            ("\nGET /metrics/XML\n\n", vec![Unknown]),
            ("one\ntwo\nGET /metrics/XML\n\n", vec![Unknown]),
        ] {
            let mut said = Said::default();
            said.hear(text.as_bytes());
            let all: Vec<Request> = std::iter::from_fn(|| said.request()).collect();
            assert_eq!(all, expected, "{text:?}");
        }
    }

    #[test]
    fn a_request_may_come_in_pieces() {
        let mut said = Said::default();
        for byte in "GET /metrics/XML\n".bytes() {
            said.hear(&[byte]);
            assert_eq!(said.request(), None);
        }
        said.hear(b"\n");
        assert_eq!(said.request(), Some(Metrics));
        assert_eq!(said.request(), None);
    }

    #[test]
    fn nobody_is_listened_to_for_ever() {
        let mut said = Said::default();
        for piece in [[b'a'; LONGEST].as_slice(), b"\n"] {
            assert_eq!(said.request(), None);
            said.hear(piece);
        }
        assert_eq!(said.request(), Some(Unknown));
        assert!(said.0.is_empty());
        said.hear(&[0xff, b'\n', b'\n']);
        assert_eq!(said.request(), Some(Unknown), "letters or not");
    }
}
