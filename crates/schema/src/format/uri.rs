//! URIs as they appear in an HTTP request: absolute, or an absolute path.

use super::internet::is_ipv6;

pub(super) fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return false;
    };
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    if !rest.starts_with('/') {
        return scheme.is_some();
    }
    match rest.strip_prefix("//") {
        Some(rest) if scheme.is_some() => {
            let end = rest.find('/').unwrap_or(rest.len());
            is_authority(&rest[..end]) && has_good_escapes(&rest[end..])
        }
        _ => has_good_escapes(rest),
    }
}

/// The scheme, if there is one, and the rest; nothing for a colon without a scheme before it.
fn split_scheme(text: &str) -> Option<(Option<&str>, &str)> {
    let scheme_char = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let end = text.find(|c| !scheme_char(c));
    match end.map(|end| (&text[..end], &text[end..])) {
        Some(("", rest)) if rest.starts_with(':') => None,
        Some((scheme, rest))
            if rest.starts_with(':') && scheme.starts_with(|c: char| c.is_ascii_alphabetic()) =>
        {
            Some((Some(scheme), &rest[1..]))
        }
        _ => Some((None, text)),
    }
}

fn is_authority(text: &str) -> bool {
    match text.rsplit_once('@') {
        Some((user, host)) => {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
            user.chars().all(allowed) && has_good_escapes(user) && is_host(host)
        }
        None => is_host(text),
    }
}

fn is_host(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix('[') {
        return rest.rsplit_once(']').is_some_and(|(address, port)| {
            let address = address.split_once("%25").map_or(address, |(a, _)| a);
            is_ipv6(address) && is_port(port)
        });
    }
    let name_end = text.find(':').unwrap_or(text.len());
    let (name, port) = text.split_at(name_end);
    let allowed = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=]<>\"%".contains(c);
    is_port(port) && name.chars().all(allowed) && escapes_only_non_ascii(name)
}

fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_digit()),
        None => text.is_empty(),
    }
}

fn has_good_escapes(text: &str) -> bool {
    escapes(text).all(|escape| escape.is_some())
}

fn escapes_only_non_ascii(text: &str) -> bool {
    escapes(text).all(|escape| escape.is_some_and(|byte| byte >= 0x80))
}

/// The bytes that `%XX` stand for; none for a broken one.
fn escapes(text: &str) -> impl Iterator<Item = Option<u8>> {
    text.split('%').skip(1).map(|rest| {
        let digits = rest.get(..2)?;
        let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        u8::from_str_radix(digits, 16).ok().filter(|_| hex)
    })
}
