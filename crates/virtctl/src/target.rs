//! How users name a virtual machine: `vm/name`, `vmi/name/namespace`, `user@vm/name`.

use crate::subresource::Kind;

/// Why a text names no machine.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    /// Nothing is there.
    #[error("target cannot be empty")]
    Empty,
    /// The type is missing.
    #[error("target must contain type and name separated by '/'")]
    NoType,
    /// There is more than a type, a name and a namespace.
    #[error("target is not valid with more than two '/'")]
    TooLong,
    /// The namespace is empty.
    #[error("namespace cannot be empty")]
    NoNamespace,
    /// The name is empty.
    #[error("name cannot be empty")]
    NoName,
    /// The type is none of ours.
    #[error("unsupported resource type '{0}'")]
    Kind(String),
    /// An `@` with nothing before it.
    #[error("expected username before '@'")]
    NoUser,
    /// An `@` with nothing after it.
    #[error("expected target after '@'")]
    NothingAfterUser,
}

/// A machine, as it was named.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    /// A VM or an instance.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Its namespace, if it was named.
    pub namespace: Option<String>,
}

/// The kind of a word such as `vm`, `VMIs` or `virtualmachine`.
pub fn kind(word: &str) -> Result<Kind, Error> {
    match word.to_ascii_lowercase().as_str() {
        "vm" | "vms" | "virtualmachine" | "virtualmachines" => Ok(Kind::Vm),
        "vmi" | "vmis" | "virtualmachineinstance" | "virtualmachineinstances" => Ok(Kind::Vmi),
        _ => Err(Error::Kind(word.to_owned())),
    }
}

impl Target {
    /// `type/name[/namespace]`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let parts: Vec<&str> = text.split('/').collect();
        let (word, name, namespace) = match parts[..] {
            [""] => return Err(Error::Empty),
            [_] => return Err(Error::NoType),
            [word, name] => (word, name, None),
            [_, _, ""] => return Err(Error::NoNamespace),
            [word, name, namespace] => (word, name, Some(namespace.to_owned())),
            _ => return Err(Error::TooLong),
        };
        let kind = kind(word)?;
        if name.is_empty() {
            return Err(Error::NoName);
        }
        Ok(Self { kind, name: name.to_owned(), namespace })
    }

    /// `[user@]type/name[/namespace]`.
    pub fn parse_with_user(text: &str) -> Result<(Option<String>, Self), Error> {
        let (user, target) = match text.split_once('@') {
            Some(("", _)) => return Err(Error::NoUser),
            Some((user, target)) => (Some(user.to_owned()), target),
            None => (None, text),
        };
        if target.is_empty() {
            return Err(Error::NothingAfterUser);
        }
        Ok((user, Self::parse(target)?))
    }

    /// The namespace, or the one that is meant where none is named.
    pub fn namespace_or<'a>(&'a self, fallback: &'a str) -> &'a str {
        self.namespace.as_deref().unwrap_or(fallback)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_or_refused() {
        let of = |kind, name: &str, namespace: Option<&str>| {
            Ok(Target { kind, name: name.to_owned(), namespace: namespace.map(str::to_owned) })
        };
        let unknown = |word: &str| Err(Error::Kind(word.to_owned()));
        for (text, expected) in [
            ("vm/a", of(Kind::Vm, "a", None)),
            ("VMI/a", of(Kind::Vmi, "a", None)),
            ("vmis/a", of(Kind::Vmi, "a", None)),
            ("vms/a", of(Kind::Vm, "a", None)),
            ("virtualmachines/a", of(Kind::Vm, "a", None)),
            ("virtualmachineinstance/a", of(Kind::Vmi, "a", None)),
            ("vm/a/ns", of(Kind::Vm, "a", Some("ns"))),
            // A dot is part of the name, whatever it meant once.
            ("vm/a.ns", of(Kind::Vm, "a.ns", None)),
            ("vmi/a.b/ns.c", of(Kind::Vmi, "a.b", Some("ns.c"))),
            ("", Err(Error::Empty)),
            ("a", Err(Error::NoType)),
            (".", Err(Error::NoType)),
            ("vm/", Err(Error::NoName)),
            ("vm/a/", Err(Error::NoNamespace)),
            ("//", Err(Error::NoNamespace)),
            ("/", unknown("")),
            ("/.", unknown("")),
            ("pod/a", unknown("pod")),
            ("vm/a/b/c", Err(Error::TooLong)),
        ] {
            assert_eq!(Target::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn users_stand_before_the_target() {
        for (text, expected) in [
            ("vm/a", Ok(None)),
            ("me@vm/a", Ok(Some("me"))),
            ("@vm/a", Err(Error::NoUser)),
            ("@", Err(Error::NoUser)),
            ("me@", Err(Error::NothingAfterUser)),
            ("", Err(Error::NothingAfterUser)),
            ("me@a", Err(Error::NoType)),
        ] {
            let user = Target::parse_with_user(text).map(|(user, _)| user);
            assert_eq!(user, expected.map(|user| user.map(str::to_owned)), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            if let Ok((_, target)) = Target::parse_with_user(&text) {
                proptest::prop_assert!(!target.name.is_empty());
            }
        }
    }
}
