//! Identifiers, encodings and other fixed notations.

use std::sync::LazyLock;

use regex_lite::Regex;

/// Standard base64 with padding; the empty string is not.
pub(super) fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    let padding = text.len() - data.len();
    let alphabet = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    !data.is_empty() && text.len().is_multiple_of(4) && padding <= 2 && data.bytes().all(alphabet)
}

/// A UUID with or without its dashes, and of the given version.
pub(super) fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut digits = [0; 32];
    let mut count = 0;
    let mut dash_allowed = false;
    for b in text.bytes() {
        match b {
            b'-' if dash_allowed => dash_allowed = false,
            b if b.is_ascii_hexdigit() && count < digits.len() => {
                digits[count] = b.to_ascii_lowercase();
                count += 1;
                dash_allowed = matches!(count, 8 | 12 | 16 | 20);
            }
            _ => return false,
        }
    }
    let variant = matches!(digits[16], b'8' | b'9' | b'a' | b'b');
    count == digits.len()
        && version.is_none_or(|version| digits[12] == version && (version == b'3' || variant))
}

pub(super) fn is_bson_object_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

pub(super) fn is_isbn(text: &str) -> bool {
    is_isbn10(text) || is_isbn13(text)
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let Some(digits) = isbn_digits::<10>(text) else {
        return false;
    };
    let weighed = digits.iter().zip(1..).map(|(digit, weight)| digit * weight);
    weighed.sum::<u32>().is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let Some(digits) = isbn_digits::<13>(text) else {
        return false;
    };
    let weighed = digits.iter().zip([1, 3].into_iter().cycle());
    digits[12] < 10 && weighed.map(|(digit, weight)| digit * weight).sum::<u32>() % 10 == 0
}

/// The digits without spaces and dashes; the last one may be an `X` for ten.
fn isbn_digits<const N: usize>(text: &str) -> Option<[u32; N]> {
    let mut digits = [0; N];
    let mut count = 0;
    for c in text.chars() {
        if matches!(c, '-' | ' ' | '\t' | '\n' | '\r' | '\u{c}') {
            continue;
        }
        let digit = match c {
            'X' if count + 1 == N => 10,
            c => c.to_digit(10)?,
        };
        *digits.get_mut(count)? = digit;
        count += 1;
    }
    (count == N).then_some(digits)
}

pub(super) fn is_credit_card(text: &str) -> bool {
    static CARD: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let visa = "4[0-9]{12}([0-9]{3})?";
        let mastercard = "5[1-5][0-9]{14}";
        let discover = "6(011|5[0-9]{2})[0-9]{12}";
        let american_express = "3[47][0-9]{13}";
        let diners = "3(0[0-5]|[68][0-9])[0-9]{11}";
        let jcb = "(2131|1800|35[0-9]{3})[0-9]{11}";
        Regex::new(&format!("^({visa}|{mastercard}|{discover}|{american_express}|{diners}|{jcb})$")).ok()
    });
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let issued = CARD.as_ref().is_some_and(|card| card.is_match(&digits));
    issued && luhn(digits.bytes().map(|b| u32::from(b - b'0'))) == 0
}

fn luhn(digits: impl DoubleEndedIterator<Item = u32>) -> u32 {
    let weighed = digits.rev().zip([1, 2].into_iter().cycle());
    let sum: u32 = weighed.map(|(digit, weight)| digit * weight / 10 + digit * weight % 10).sum();
    sum % 10
}

/// `123-45-6789`, dashes or spaces.
pub(super) fn is_ssn(text: &str) -> bool {
    text.len() == 11
        && text.bytes().enumerate().all(|(i, b)| match i {
            3 | 6 => matches!(b, b'-' | b' '),
            _ => b.is_ascii_digit(),
        })
}

pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

pub(super) fn is_rgb_color(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|t| t.strip_suffix(')')) else {
        return false;
    };
    let mut parts = 0;
    inner.split(',').all(|part| {
        parts += 1;
        let number = part.trim_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let plain = number == "0" || number.starts_with(|c: char| ('1'..='9').contains(&c));
        plain && number.parse::<u8>().is_ok()
    }) && parts == 3
}
