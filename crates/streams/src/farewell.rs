//! How a stream ends: with a number for programs and a reason for people.

use std::borrow::Cow;
use std::io;

use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::stream::TooLarge;

/// How many bytes of a reason a WebSocket can carry.
const LONGEST: usize = 123;

/// The number. Clients of KubeVirt take [`Code::NORMAL`] for an end that nobody need be told of, and any other for a
/// failure, which they report with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(u16);

impl Code {
    /// It is over.
    pub const NORMAL: Self = Self(1000);
    /// The one who was spoken to is gone.
    pub const AWAY: Self = Self(1001);
    /// It is not allowed to go on.
    pub const POLICY: Self = Self(1008);
    /// A message is larger than what is taken.
    pub const TOO_LARGE: Self = Self(1009);
    /// Something does not work.
    pub const BROKEN: Self = Self(1011);
    /// The server ends; another, or the next, will answer.
    pub const RESTART: Self = Self(1012);
}

/// Phrases by which clients know why a stream ended: the number that comes with them differs between servers.
pub mod phrases {
    /// Somebody else has the place now.
    pub const ANOTHER_VIEWER: &str = "another viewer";
    /// Something between the client and the machine ends, and the machine does not.
    pub const CONNECT_AGAIN: &str = "connect again";
}

/// The last words of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Farewell {
    /// What kind of end it is.
    pub code: Code,
    /// Why; empty if there is nothing to say.
    pub reason: Cow<'static, str>,
}

impl Farewell {
    /// An end that needs no words.
    pub const NORMAL: Self = Self::new(Code::NORMAL, "");
    /// For a viewer whose place somebody else has taken.
    pub const TAKEN_OVER: Self =
        Self::new(Code::POLICY, "another viewer has connected, and only one can be connected at a time");
    /// For everyone who is connected to a virt-handler that ends.
    pub const HANDLER_ENDS: Self = Self::new(Code::RESTART, "virt-handler ends here: connect again");
    /// For everyone who is connected to a virt-api that ends.
    pub const API_ENDS: Self = Self::new(Code::RESTART, "this virt-api ends; connect again to reach another");
    /// For who is connected to a machine that has ended, or has moved.
    pub const MACHINE_ENDED: Self =
        Self::new(Code::AWAY, "the virtual machine instance has closed the connection");

    /// With a reason, which is cut to what a WebSocket can say.
    pub const fn new(code: Code, reason: &'static str) -> Self {
        Self { code, reason: Cow::Borrowed(reason) }
    }

    /// For who made a mistake that ended the stream, by the error of reading it; none if it just broke.
    pub fn after(error: &io::Error) -> Option<Self> {
        let mistake = error.get_ref()?.downcast_ref::<TooLarge>()?;
        Some(Self { code: Code::TOO_LARGE, reason: mistake.to_string().into() })
    }

    pub(crate) fn frame(&self) -> CloseFrame {
        let mut length = self.reason.len().min(LONGEST);
        while !self.reason.is_char_boundary(length) {
            length -= 1;
        }
        CloseFrame { code: self.code.0.into(), reason: self.reason[..length].into() }
    }
}

impl From<CloseFrame> for Farewell {
    fn from(frame: CloseFrame) -> Self {
        Self { code: Code(frame.code.into()), reason: Cow::Owned(frame.reason.as_str().to_owned()) }
    }
}

/// Only a reason: whoever gives it goes away.
impl From<&'static str> for Farewell {
    fn from(reason: &'static str) -> Self {
        Self::new(Code::AWAY, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_cut_between_letters() {
        let long = Farewell { code: Code::AWAY, reason: "é".repeat(100).into() };
        let frame = long.frame();
        assert_eq!((frame.reason.as_str(), u16::from(frame.code)), ("é".repeat(61).as_str(), 1001));
        let short = Farewell::new(Code::RESTART, "soon");
        assert_eq!(Farewell::from(short.frame()), short);
    }

    #[test]
    fn reasons_have_the_phrases_that_clients_look_for() {
        use phrases::{ANOTHER_VIEWER, CONNECT_AGAIN};
        for (farewell, viewer, again) in [
            (Farewell::TAKEN_OVER, true, false),
            (Farewell::HANDLER_ENDS, false, true),
            (Farewell::API_ENDS, false, true),
            (Farewell::MACHINE_ENDED, false, false),
        ] {
            // As it arrives, which may be less than was meant.
            let reason = farewell.frame().reason.as_str().to_owned();
            assert_eq!(
                (reason.contains(ANOTHER_VIEWER), reason.contains(CONNECT_AGAIN)),
                (viewer, again),
                "{reason}"
            );
        }
    }

    #[test]
    fn only_mistakes_of_clients_are_explained_to_them() {
        let mistake = io::Error::new(io::ErrorKind::InvalidData, TooLarge);
        assert_eq!(Farewell::after(&mistake).unwrap().code, Code::TOO_LARGE);
        let broken = io::Error::new(io::ErrorKind::InvalidData, "bad record MAC");
        for broken in [broken, io::ErrorKind::ConnectionReset.into(), io::Error::from_raw_os_error(104)] {
            assert_eq!(Farewell::after(&broken), None, "{broken}");
        }
    }
}
