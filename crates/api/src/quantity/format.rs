//! Writes a quantity in its canonical form: no fraction, and the largest unit that loses nothing.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{Amount, Format, NANO};

/// The decimal suffixes, each a thousand times the one before, from nano.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// The binary suffixes, each 1024 times the one before, from one.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// The smallest size that binary suffixes are used for.
const SMALLEST_BINARY: u128 = 1024;

impl Amount {
    /// The quantity Kubernetes writes for this amount.
    ///
    /// Binary gives way to decimal below 1024, for fractions and beyond an `i64`, where it would lose something.
    #[must_use]
    pub fn to_quantity(self, format: Format) -> Quantity {
        let size = self.nanos().unsigned_abs();
        let number = match format {
            _ if size == 0 => "0".to_owned(),
            Format::BinarySi => binary(size).unwrap_or_else(|| decimal(size)),
            Format::DecimalSi => decimal(size),
            Format::DecimalExponent => exponent(size),
        };
        Quantity(if self.is_negative() { format!("-{number}") } else { number })
    }
}

fn binary(nanos: u128) -> Option<String> {
    let nano = NANO.unsigned_abs();
    let units = nanos / nano;
    if !nanos.is_multiple_of(nano) || units < SMALLEST_BINARY || i64::try_from(units).is_err() {
        return None;
    }
    let (count, power) = strip(units, 1024, BINARY.len() - 1);
    Some(format!("{count}{}", BINARY[power]))
}

fn decimal(nanos: u128) -> String {
    let (count, power) = strip(nanos, 1000, DECIMAL.len() - 1);
    format!("{count}{}", DECIMAL[power])
}

fn exponent(nanos: u128) -> String {
    match strip(nanos, 1000, usize::MAX) {
        (count, 3) => count.to_string(),
        (count, power) => format!("{count}e{}", 3 * power as i64 - 9),
    }
}

/// Divides a size that is not zero by `base` as often as nothing remains, up to `limit` times.
fn strip(mut size: u128, base: u128, limit: usize) -> (u128, usize) {
    let mut times = 0;
    while times < limit && size.is_multiple_of(base) {
        size /= base;
        times += 1;
    }
    (size, times)
}
