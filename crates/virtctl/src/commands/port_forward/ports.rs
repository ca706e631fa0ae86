//! Ports as users write them: `[protocol/]local[:target]`.

/// Why a text is no port.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    /// There is no number.
    #[error("invalid port, missing local and/or remote port: {0:?}")]
    Missing(String),
    /// It is not a number from 1 to 65535.
    #[error("invalid port {0:?}: it must be a number up to 65535")]
    Number(String),
    /// It is neither TCP nor UDP.
    #[error("unknown protocol: {0}; use tcp or udp")]
    Protocol(String),
}

/// How a port is spoken to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    /// Streams.
    Tcp,
    /// Datagrams.
    Udp,
}

impl Protocol {
    /// As it stands in a path.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// A port here and a port there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Port {
    /// How both are spoken to.
    pub protocol: Protocol,
    /// The one here.
    pub local: u16,
    /// The one there.
    pub target: u16,
}

impl Port {
    /// From the text of an argument.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (protocol, rest) = match text.split_once('/') {
            Some((word, rest)) => (protocol(word)?, rest),
            None => (Protocol::Tcp, text),
        };
        let number = |part: &str| match part {
            "" => Err(Error::Missing(text.to_owned())),
            part => part.parse().map_err(|_| Error::Number(part.to_owned())),
        };
        let (local, target) = match rest.split_once(':') {
            // Nothing before the colon is the same port on both sides.
            Some(("", target)) => (number(target)?, number(target)?),
            Some((local, target)) => (number(local)?, number(target)?),
            None => (number(rest)?, number(rest)?),
        };
        if target == 0 {
            return Err(Error::Number("0".to_owned()));
        }
        Ok(Self { protocol, local, target })
    }
}

fn protocol(word: &str) -> Result<Protocol, Error> {
    match word.to_ascii_lowercase().as_str() {
        "tcp" => Ok(Protocol::Tcp),
        "udp" => Ok(Protocol::Udp),
        _ => Err(Error::Protocol(word.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_or_refused() {
        let of = |protocol, local, target| Ok(Port { protocol, local, target });
        let missing = |text: &str| Err(Error::Missing(text.to_owned()));
        let number = |text: &str| Err(Error::Number(text.to_owned()));
        for (text, expected) in [
            ("8080", of(Protocol::Tcp, 8080, 8080)),
            ("8080:8090", of(Protocol::Tcp, 8080, 8090)),
            ("tcp/8080", of(Protocol::Tcp, 8080, 8080)),
            ("udp/8080", of(Protocol::Udp, 8080, 8080)),
            ("UDP/8080:8090", of(Protocol::Udp, 8080, 8090)),
            (":22", of(Protocol::Tcp, 22, 22)),
            ("0:22", of(Protocol::Tcp, 0, 22)),
            ("", missing("")),
            ("udp/", missing("udp/")),
            ("22:", missing("22:")),
            ("udp", number("udp")),
            ("80C0:8X90", number("80C0")),
            ("22:0", number("0")),
            ("65536", number("65536")),
            ("-1", number("-1")),
            ("sctp/1", Err(Error::Protocol("sctp".to_owned()))),
        ] {
            assert_eq!(Port::parse(text), expected, "{text}");
        }
    }
}
