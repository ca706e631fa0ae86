//! Addresses and names of the internet.

use std::net::Ipv6Addr;

/// An IPv4 address, possibly with leading zeros or mapped into IPv6.
pub(super) fn is_ipv4(text: &str) -> bool {
    text.contains('.') && (is_dotted(text) || is_lenient_ipv6(text))
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let Some(bits) = decimal(bits) else {
        return false;
    };
    (is_dotted(address) && bits <= 32) || (is_lenient_ipv6(address) && bits <= 128)
}

fn is_dotted(text: &str) -> bool {
    let mut numbers = 0;
    text.split('.').all(|number| {
        numbers += 1;
        decimal(number).is_some_and(|number| number <= 255)
    }) && numbers == 4
}

/// Leading zeros are fine, signs and spaces are not.
fn decimal(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// An IPv6 address whose IPv4 tail, if any, may have leading zeros.
fn is_lenient_ipv6(text: &str) -> bool {
    match text.rsplit_once(':') {
        Some((head, tail)) if tail.contains('.') => {
            is_dotted(tail) && format!("{head}:0.0.0.0").parse::<Ipv6Addr>().is_ok()
        }
        _ => is_ipv6(text),
    }
}

/// 6, 8 or 20 bytes, as `01:23:…`, `01-23-…` or `0123.4567.…`.
pub(super) fn is_mac(text: &str) -> bool {
    let (separator, width) = match text.as_bytes() {
        [_, _, separator @ (b':' | b'-'), ..] => (char::from(*separator), 2),
        [_, _, _, _, b'.', ..] => ('.', 4),
        _ => return false,
    };
    let mut bytes = 0;
    let hex = text.split(separator).all(|group| {
        bytes += width / 2;
        group.len() == width && group.bytes().all(|b| b.is_ascii_hexdigit())
    });
    hex && matches!(bytes, 6 | 8 | 20)
}

/// Either one label with at most one dash, right after its first character, or dotted labels with
/// a top-level domain of letters. That is what the API server takes for a host name.
pub(super) fn is_hostname(text: &str) -> bool {
    if text.len() > 255 || text.split('.').any(|label| label.len() > 63) {
        return false;
    }
    match text.rsplit_once('.') {
        None => {
            let mut chars = text.chars();
            let first = chars.next().is_some_and(is_name_char);
            let rest = chars.as_str();
            first && rest.strip_prefix('-').unwrap_or(rest).chars().all(is_name_char)
        }
        Some((labels, top)) => {
            let letters = top.chars().filter(|c| c.is_alphabetic()).count();
            letters >= 2 && letters == top.chars().count() && labels.split('.').all(is_label)
        }
    }
}

fn is_label(label: &str) -> bool {
    let mut chars = label.chars();
    chars.next().is_some_and(is_name_char)
        && chars.next_back().is_none_or(is_name_char)
        && chars.all(|c| c == '-' || is_name_char(c))
}

/// Letters, digits and symbols.
fn is_name_char(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphanumeric() || "$+<=>^`|~".contains(c)
    } else {
        !c.is_whitespace() && !c.is_control()
    }
}

pub(super) fn is_short_name(text: &str) -> bool {
    text.len() <= 63 && is_lowercase_label(text)
}

pub(super) fn is_long_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_lowercase_label)
}

fn is_lowercase_label(label: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    match label.as_bytes() {
        [] => false,
        [first, .., last] if !inner(*first) || !inner(*last) => false,
        [only] => inner(*only),
        bytes => bytes.iter().all(|&b| b == b'-' || inner(b)),
    }
}

/// `local@domain`, or the same in angle brackets behind a name.
pub(super) fn is_email(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    match text.strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
        Some((name, address)) => is_display_name(name.trim_end()) && is_address(address),
        None => is_address(text),
    }
}

fn is_display_name(name: &str) -> bool {
    let word = |word: &str| !word.is_empty() && word.chars().all(|c| c == '.' || is_atom_char(c));
    name.is_empty() || is_quoted(name) || name.split_ascii_whitespace().all(word)
}

fn is_address(address: &str) -> bool {
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let literal = domain.strip_prefix('[').and_then(|d| d.strip_suffix(']'));
    let domain_ok = match literal {
        Some(address) => is_dotted(address) || is_ipv6(address.trim_start_matches("IPv6:")),
        None => is_dot_atom(domain),
    };
    domain_ok && (is_dot_atom(local) || is_quoted(local))
}

fn is_dot_atom(text: &str) -> bool {
    text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom_char))
}

fn is_atom_char(c: char) -> bool {
    !c.is_ascii() || c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c)
}

fn is_quoted(text: &str) -> bool {
    let Some(inner) = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) else {
        return false;
    };
    let mut escaped = false;
    let fine = inner.chars().all(|c| {
        let fine = escaped || c != '"';
        escaped = !escaped && c == '\\';
        fine && !c.is_control()
    });
    fine && !escaped
}
