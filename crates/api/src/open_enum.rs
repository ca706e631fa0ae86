//! Enums for closed sets of words that still hold any text.

/// Declares an enum whose variants are words of the API and whose last variant, `Other`, keeps any other text.
macro_rules! open_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`")] $variant,)+
            /// Any other text, kept as it was written.
            Other(String),
        }

        impl $name {
            /// The words that are known.
            pub const KNOWN: &'static [&'static str] = &[$($text),+];

            /// The text as it stands in a manifest.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(text) => text,
                }
            }

            /// Whether the text is one of the known words.
            pub fn is_known(&self) -> bool {
                !matches!(self, Self::Other(_))
            }

            /// Whether the text is empty, which means the same as a field that is not there.
            pub fn is_empty(&self) -> bool {
                self.as_str().is_empty()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Ok(Self::from(text.as_ref()))
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" })
            }
        }
    };
}

pub(crate) use open_enum;

#[cfg(test)]
mod tests {
    use crate::vmi::disks::DiskBus;

    #[test]
    fn a_known_word_is_a_variant_and_any_other_text_is_kept() {
        let read = |text: &str| serde_json::from_value::<DiskBus>(text.into()).unwrap();
        assert_eq!(read("virtio"), DiskBus::Virtio);
        assert_eq!(read("floppy"), DiskBus::Other("floppy".into()));
        assert_eq!(serde_json::to_value(read("floppy")).unwrap(), "floppy");
        assert!(read("").is_empty() && !read("").is_known());
    }
}
