//! Hardware addresses of network interfaces.

use std::{fmt, str::FromStr};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mac(pub [u8; 6]);

/// A text is not an Ethernet address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an Ethernet address")]
pub struct InvalidMac(String);

impl Mac {
    /// The address of every masquerading bridge: a guest that migrates finds its gateway unchanged.
    pub const GATEWAY: Self = Self([2, 0, 0, 0, 0, 0]);

    /// Another address that follows from this one, for an interface that gave this one to the guest.
    ///
    /// It is locally administered, and as unlikely to meet its like on a network as a random one, yet the same
    /// each time that a pod is looked at.
    #[must_use]
    pub fn stand_in(self) -> Self {
        let mut bytes = [0; 6];
        bytes.copy_from_slice(&digest(&SHA256, &self.0).as_ref()[..6]);
        bytes[0] = (bytes[0] | 0b10) & !0b1;
        if bytes == self.0 {
            bytes[5] ^= 1;
        }
        Self(bytes)
    }
}

impl FromStr for Mac {
    type Err = InvalidMac;

    /// Reads `02:00:00:00:00:01`, `02-00-00-00-00-01` and `0200.0000.0001`.
    fn from_str(text: &str) -> Result<Self, InvalidMac> {
        let invalid = || InvalidMac(text.to_owned());
        let (separator, length) = match text.as_bytes().get(2) {
            Some(b':') => (':', 2),
            Some(b'-') => ('-', 2),
            _ => ('.', 4),
        };
        let groups: Vec<&str> = text.split(separator).collect();
        let hex = |group: &&str| group.len() == length && group.bytes().all(|b| b.is_ascii_hexdigit());
        if groups.len() * length != 12 || !groups.iter().all(hex) {
            return Err(invalid());
        }
        let value = u64::from_str_radix(&groups.concat(), 16).map_err(|_| invalid())?;
        let mut bytes = [0; 6];
        bytes.copy_from_slice(&value.to_be_bytes()[2..]);
        Ok(Self(bytes))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl TryFrom<String> for Mac {
    type Error = InvalidMac;

    fn try_from(text: String) -> Result<Self, InvalidMac> {
        text.parse()
    }
}

impl From<Mac> for String {
    fn from(mac: Mac) -> Self {
        mac.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text() {
        let mac = Mac([0x02, 0x42, 0xac, 0x11, 0, 0xfe]);
        for text in ["02:42:ac:11:00:fe", "02-42-AC-11-00-FE", "0242.ac11.00fe"] {
            assert_eq!(text.parse(), Ok(mac), "{text}");
        }
        assert_eq!(mac.to_string(), "02:42:ac:11:00:fe");
        for text in [
            "",
            "02:42",
            "02:42:ac:11:00:f",
            "02:42:ac:11:00:fe:01:02",
            "02:42-ac:11:00:fe",
            "+2:42:ac:11:00:fe",
            "é:42",
        ] {
            assert!(text.parse::<Mac>().is_err(), "{text}");
        }
    }

    #[test]
    fn stand_in_differs_and_stays() {
        let mac: Mac = "0a:58:0a:f4:01:05".parse().unwrap();
        assert_ne!(mac.stand_in(), mac);
        assert_eq!(mac.stand_in(), mac.stand_in());
        assert_eq!(mac.stand_in().0[0] & 0b11, 0b10, "local, and of one interface");
    }
}
