//! The shapes of names that Kubernetes asks for.

/// What a DNS label is, for messages.
pub(crate) const DNS_LABEL: &str =
    "at most 63 lower-case letters, digits and '-', with a letter or digit at both ends";
/// What a DNS subdomain is, for messages.
pub(crate) const DNS_SUBDOMAIN: &str =
    "at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends of every part";
/// What the key of a label is, for messages.
pub(crate) const LABEL_KEY: &str =
    "at most 63 letters, digits, '-', '_' and '.', after an optional DNS subdomain and '/'";
/// What the value of a label is, for messages.
pub(crate) const LABEL_VALUE: &str =
    "empty, or at most 63 letters, digits, '-', '_' and '.' with a letter or digit at both ends";

/// Whether the text is a DNS label, such as `my-vm`.
pub(crate) fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_label_of_any_length(text)
}

/// Whether the text is a DNS subdomain, such as `my-vm.example.com`.
pub(crate) fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label_of_any_length)
}

/// Whether the text can be the key of a label, such as `example.com/role`.
pub(crate) fn is_label_key(text: &str) -> bool {
    let name = match text.split_once('/') {
        Some((prefix, name)) if is_dns_subdomain(prefix) => name,
        Some(_) => return false,
        None => text,
    };
    !name.is_empty() && is_label_value(name)
}

/// Whether the text can be the value of a label.
pub(crate) fn is_label_value(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        && bytes.first().is_none_or(u8::is_ascii_alphanumeric)
        && bytes.last().is_none_or(u8::is_ascii_alphanumeric)
}

fn is_label_of_any_length(text: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| plain(byte) || *byte == b'-')
        && bytes.first().is_some_and(plain)
        && bytes.last().is_some_and(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_subdomains_and_label_parts() {
        let long = "a".repeat(64);
        for (text, label, subdomain, key, value) in [
            ("my-vm", true, true, true, true),
            ("", false, false, false, true),
            ("My-VM", false, false, true, true),
            ("a.b", false, true, true, true),
            ("a..b", false, false, true, true),
            ("-a", false, false, false, false),
            ("a-", false, false, false, false),
            ("a_b", false, false, true, true),
            ("1", true, true, true, true),
            ("ü", false, false, false, false),
            ("example.com/role", false, false, true, false),
            ("/role", false, false, false, false),
            ("example.com/", false, false, false, false),
            ("a/b/c", false, false, false, false),
            ("Up/role", false, false, false, false),
            (&long, false, true, false, false),
        ] {
            assert_eq!(is_dns_label(text), label, "label {text}");
            assert_eq!(is_dns_subdomain(text), subdomain, "subdomain {text}");
            assert_eq!(is_label_key(text), key, "key {text}");
            assert_eq!(is_label_value(text), value, "value {text}");
        }
        assert!(!is_dns_subdomain(&"a".repeat(254)));
    }
}
