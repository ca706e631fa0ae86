//! Puts netlink messages together and takes their attributes apart.

use crate::bytes::array;

const HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
const NESTED: u16 = 0x8000;
const KIND: u16 = 0x3fff;

/// A message that is being written.
#[derive(Debug, Clone)]
pub struct Message(Vec<u8>);

impl Message {
    /// A message with its fixed part; the socket fills in length and sequence number.
    pub fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(fixed);
        Self(bytes)
    }

    /// With an attribute.
    pub fn with(mut self, kind: u16, value: &[u8]) -> Self {
        Attributes(&mut self.0).put(kind, value);
        self
    }

    /// With an attribute that holds attributes.
    pub fn with_nested(mut self, kind: u16, fill: impl FnOnce(&mut Attributes<'_>)) -> Self {
        Attributes(&mut self.0).nest(kind, fill);
        self
    }

    /// The bytes to send.
    pub fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

/// A place where attributes are written.
pub struct Attributes<'a>(&'a mut Vec<u8>);

impl Attributes<'_> {
    /// Adds an attribute.
    pub fn put(&mut self, kind: u16, value: &[u8]) {
        let start = self.open(kind);
        self.0.extend_from_slice(value);
        self.close(start);
    }

    /// Adds a number in network order, as nf_tables wants them.
    pub fn put_number(&mut self, kind: u16, value: u32) {
        self.put(kind, &value.to_be_bytes());
    }

    /// Adds a text with the zero that C ends it with.
    pub fn put_text(&mut self, kind: u16, value: &str) {
        self.put(kind, &text(value));
    }

    /// Adds an attribute that holds attributes.
    pub fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Attributes<'_>)) {
        let start = self.open(kind | NESTED);
        fill(self);
        self.close(start);
    }

    fn open(&mut self, kind: u16) -> usize {
        let start = self.0.len();
        self.0.extend_from_slice(&[0, 0]);
        self.0.extend_from_slice(&kind.to_ne_bytes());
        start
    }

    fn close(&mut self, start: usize) {
        let length = u16::try_from(self.0.len() - start).unwrap_or(u16::MAX);
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}

/// A text as C has it.
pub fn text(value: &str) -> Vec<u8> {
    let mut bytes = value.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// The attributes in `bytes`, up to the first that makes no sense.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(array(bytes, 0)?));
        let kind = u16::from_ne_bytes(array(bytes, 2)?) & KIND;
        let value = bytes.get(ATTRIBUTE_HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of the attribute at the end of a path of kinds.
pub fn nested<'a>(bytes: &'a [u8], path: &[u16]) -> Option<&'a [u8]> {
    path.iter()
        .try_fold(bytes, |inner, wanted| attributes(inner).find(|(kind, _)| kind == wanted).map(|(_, v)| v))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let message = Message::new(7, 0, &[9; 4])
            .with(1, b"abc")
            .with_nested(2, |a| {
                a.put_text(3, "x");
                a.nest(4, |a| a.put_number(5, 6));
            })
            .finish(1);
        let body = &message[HEADER + 4..];
        assert_eq!(message.len() % 4, 0);
        assert_eq!(nested(body, &[1]), Some(&b"abc"[..]));
        assert_eq!(nested(body, &[2, 3]), Some(&b"x\0"[..]));
        assert_eq!(nested(body, &[2, 4, 5]), Some(&[0, 0, 0, 6][..]));
        assert_eq!(nested(body, &[2, 9]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(attributes(&bytes).count() <= bytes.len() / ATTRIBUTE_HEADER + 1);
        }
    }
}
