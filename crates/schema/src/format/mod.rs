//! The `format` keyword: the formats that the API server checks for custom resources.

mod codes;
mod internet;
mod time;
mod uri;

use crate::node::Type;

/// What a format demands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Format {
    /// An integer of 32 bits.
    Int32,
    /// A float of 32 bits.
    Float,
    /// A string that passes a test.
    Text(&'static TextFormat),
}

/// A format of strings.
#[derive(Debug)]
pub(crate) struct TextFormat {
    /// The name without dashes, which do not count.
    name: &'static str,
    /// What it is, with its article, for messages.
    pub(crate) what: &'static str,
    pub(crate) accepts: fn(&str) -> bool,
}

impl Format {
    /// Finds a format by name; those that the API server ignores for this type are not found.
    pub(crate) fn named(name: &str, kind: Option<Type>) -> Option<Self> {
        match (kind, name) {
            (Some(Type::Integer), "int32") => Some(Self::Int32),
            (Some(Type::Number), "float") => Some(Self::Float),
            (None | Some(Type::String | Type::IntOrString), _) => {
                let name = name.replace('-', "");
                let format = TEXT_FORMATS.iter().find(|format| format.name == name)?;
                Some(Self::Text(format))
            }
            _ => None,
        }
    }
}

const fn text(name: &'static str, what: &'static str, accepts: fn(&str) -> bool) -> TextFormat {
    TextFormat { name, what, accepts }
}

static TEXT_FORMATS: &[TextFormat] = &[
    text("bsonobjectid", "a BSON object id", codes::is_bson_object_id),
    text("byte", "base64 text", codes::is_base64),
    text("cidr", "a network such as 10.0.0.0/8", internet::is_cidr),
    text("creditcard", "a credit card number", codes::is_credit_card),
    text("date", "a date such as 2024-05-01", time::is_date),
    text("datetime", "a date and time such as 2024-05-01T12:00:00Z", time::is_date_time),
    text("duration", "a duration such as 1h30m", time::is_duration),
    text("email", "an email address", internet::is_email),
    text("hexcolor", "a colour such as #ff8800", codes::is_hex_color),
    text("hostname", "a host name", internet::is_hostname),
    text("ipv4", "an IPv4 address", internet::is_ipv4),
    text("ipv6", "an IPv6 address", internet::is_ipv6),
    text("isbn", "an ISBN", codes::is_isbn),
    text("isbn10", "an ISBN of 10 digits", codes::is_isbn10),
    text("isbn13", "an ISBN of 13 digits", codes::is_isbn13),
    text(
        "k8slongname",
        "a name of at most 253 lowercase letters, digits, dashes and dots",
        internet::is_long_name,
    ),
    text(
        "k8sshortname",
        "a name of at most 63 lowercase letters, digits and dashes",
        internet::is_short_name,
    ),
    text("mac", "a MAC address", internet::is_mac),
    text("rgbcolor", "a colour such as rgb(255,136,0)", codes::is_rgb_color),
    text("ssn", "a social security number", codes::is_ssn),
    text("uri", "a URI or an absolute path", uri::is_uri),
    text("uuid", "a UUID", |text| codes::is_uuid(text, None)),
    text("uuid3", "a UUID of version 3", |text| codes::is_uuid(text, Some(b'3'))),
    text("uuid4", "a UUID of version 4", |text| codes::is_uuid(text, Some(b'4'))),
    text("uuid5", "a UUID of version 5", |text| codes::is_uuid(text, Some(b'5'))),
];

#[cfg(test)]
mod tests;
