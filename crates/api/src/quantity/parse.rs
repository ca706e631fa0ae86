//! Reads the text of a quantity: a sign, digits with an optional fraction, and a suffix.

use super::{Amount, Format, NANO, QuantityError, signed};

/// Kubernetes holds binary quantities within the largest `i64`, here in nanos.
const LARGEST_BINARY: u128 = i64::MAX as u128 * NANO as u128;
/// More leading zeros than this in a fraction cannot change what it rounds to.
const TELLING_ZEROS: i64 = 40;

/// A well-formed text cut into its parts.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: Suffix,
}

/// What the digits are multiplied with: ten to the `tens` and two to the `twos`.
struct Suffix {
    tens: i64,
    twos: u32,
    format: Format,
}

/// The number and the format of a text.
pub(super) fn read(text: &str) -> Result<(Amount, Format), QuantityError> {
    let parts = split(text).ok_or_else(|| QuantityError::Malformed(text.to_owned()))?;
    let size = size(&parts).ok_or(QuantityError::Overflow)?;
    let nanos = signed(parts.negative, size).ok_or(QuantityError::Overflow)?;
    let format = match parts.suffix.format {
        // A fraction of one byte is not worth writing in bytes.
        Format::BinarySi if size > 0 && size < NANO.unsigned_abs() => Format::DecimalSi,
        format => format,
    };
    Ok((Amount::from_nanos(nanos), format))
}

/// The format of a text, even if its number is too large to read.
pub(super) fn format(text: &str) -> Option<Format> {
    match read(text) {
        Ok((_, format)) => Some(format),
        Err(_) => split(text).map(|parts| parts.suffix.format),
    }
}

fn split(text: &str) -> Option<Parts<'_>> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = leading_digits(unsigned);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), leading_digits);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    Some(Parts { negative, whole, fraction, suffix: suffix(rest)? })
}

fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn suffix(text: &str) -> Option<Suffix> {
    let decimal = |tens| Suffix { tens, twos: 0, format: Format::DecimalSi };
    let binary = |twos| Suffix { tens: 0, twos, format: Format::BinarySi };
    Some(match text {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let tens = text.strip_prefix(['e', 'E'])?.parse().ok()?;
            Suffix { tens, twos: 0, format: Format::DecimalExponent }
        }
    })
}

/// The number of nanos, rounded up and without its sign, unless it is too large.
fn size(parts: &Parts<'_>) -> Option<u128> {
    let digits = [parts.whole, parts.fraction].concat();
    if digits.bytes().all(|digit| digit == b'0') {
        return Some(0);
    }
    let exact = shifted_size(&digits, parts);
    match parts.suffix.format {
        Format::BinarySi => Some(exact.map_or(LARGEST_BINARY, |size| size.min(LARGEST_BINARY))),
        Format::DecimalSi | Format::DecimalExponent => exact,
    }
}

/// Moves the point by the power of ten, then counts nanos on both sides of it; time grows with the text only,
/// since a long row of zeros ends in overflow or in a fraction too small to tell.
fn shifted_size(digits: &str, parts: &Parts<'_>) -> Option<u128> {
    let point = (parts.whole.len() as i64).saturating_add(parts.suffix.tens);
    let length = digits.len() as i64;
    let (whole, fraction) = digits.as_bytes().split_at(point.clamp(0, length) as usize);
    let unit = NANO.unsigned_abs() << parts.suffix.twos;

    let mut units = 0_u128;
    for digit in whole.iter().copied().map(value).chain((length..point).map(|_| 0)) {
        units = units.checked_mul(10)?.checked_add(digit)?;
    }

    // From the last digit to the first, so that one flag remembers everything that was rounded off.
    let zeros = point.saturating_neg().clamp(0, TELLING_ZEROS);
    let (mut nanos, mut inexact) = (0, false);
    for digit in fraction.iter().rev().copied().map(value).chain((0..zeros).map(|_| 0)) {
        let tenfold = digit * unit + nanos;
        nanos = tenfold / 10;
        inexact |= !tenfold.is_multiple_of(10);
    }

    units.checked_mul(unit)?.checked_add(nanos + u128::from(inexact))
}

fn value(digit: u8) -> u128 {
    u128::from(digit - b'0')
}
