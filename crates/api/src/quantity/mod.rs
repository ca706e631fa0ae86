//! Exact arithmetic on Kubernetes quantities, which are otherwise only text.

mod format;
mod parse;
#[cfg(test)]
mod tests;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// How many nano units make one unit.
const NANO: i128 = 1_000_000_000;
/// How many nano units make one milli unit.
const NANO_PER_MILLI: i128 = 1_000_000;

/// Why a quantity cannot be used as a number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text is not a quantity.
    #[error("{0:?} is not a quantity")]
    Malformed(String),
    /// The number is larger than an [`Amount`], or than the integer asked for, can hold.
    #[error("the quantity is too large")]
    Overflow,
}

/// The three ways Kubernetes writes a quantity; it keeps to the one the user chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Powers of 1024: `12Mi`.
    BinarySi,
    /// Powers of 1000 as letters: `12M`, `100m`.
    DecimalSi,
    /// Powers of 1000 as exponents: `12e6`.
    DecimalExponent,
}

/// The number a quantity stands for, counted in nano units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount {
    nanos: i128,
}

impl Amount {
    /// Reads the text of a quantity; what is finer than a nano is rounded away from zero.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        parse::read(text).map(|(amount, _)| amount)
    }

    /// Reads a quantity as it came in an object; space around it does not count.
    pub fn of(quantity: &Quantity) -> Result<Self, QuantityError> {
        Self::parse(quantity.0.trim())
    }

    /// A whole number of units.
    #[must_use]
    pub const fn from_int(units: i64) -> Self {
        Self { nanos: units as i128 * NANO }
    }

    /// A number of thousandths.
    #[must_use]
    pub const fn from_milli(millis: i64) -> Self {
        Self { nanos: millis as i128 * NANO_PER_MILLI }
    }

    /// A number of billionths.
    #[must_use]
    pub const fn from_nanos(nanos: i128) -> Self {
        Self { nanos }
    }

    /// The exact number of billionths.
    #[must_use]
    pub const fn nanos(self) -> i128 {
        self.nanos
    }

    /// Nothing.
    #[must_use]
    pub const fn zero() -> Self {
        Self { nanos: 0 }
    }

    /// Whether this is nothing.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether this is less than nothing.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// The number of units, rounded away from zero and held within an `i64`.
    #[must_use]
    pub fn value(self) -> i64 {
        clamp(self.in_steps_of(NANO))
    }

    /// The number of units, rounded away from zero, unless it does not fit an `i64`.
    #[must_use]
    pub fn checked_value(self) -> Option<i64> {
        self.in_steps_of(NANO).try_into().ok()
    }

    /// The number of thousandths, rounded away from zero and held within an `i64`.
    #[must_use]
    pub fn milli_value(self) -> i64 {
        clamp(self.in_steps_of(NANO_PER_MILLI))
    }

    /// The sum, unless it is too large.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.nanos.checked_add(other.nanos).map(Self::from_nanos)
    }

    /// The difference, unless it is too large.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.nanos.checked_sub(other.nanos).map(Self::from_nanos)
    }

    /// This many times the amount, unless it is too large.
    #[must_use]
    pub fn checked_mul_int(self, times: i64) -> Option<Self> {
        self.nanos.checked_mul(i128::from(times)).map(Self::from_nanos)
    }

    /// The exact `num / den` of the amount, rounded away from zero to a nano; nothing when `den` is zero or
    /// the result is too large.
    #[must_use]
    pub fn checked_mul_ratio(self, num: i64, den: i64) -> Option<Self> {
        let negative = self.is_negative() ^ (num < 0) ^ (den < 0);
        let (size, num, den) =
            (self.nanos.unsigned_abs(), u128::from(num.unsigned_abs()), u128::from(den.unsigned_abs()));
        // Dividing first keeps the product of what remains within 126 bits.
        let whole = size.checked_div(den)?.checked_mul(num)?;
        let rest = ((size % den) * num).div_ceil(den);
        signed(negative, whole.checked_add(rest)?).map(Self::from_nanos)
    }

    /// How many steps of this size cover the amount, rounded away from zero.
    fn in_steps_of(self, step: i128) -> i128 {
        let whole = self.nanos / step;
        if self.nanos % step == 0 { whole } else { whole + self.nanos.signum() }
    }
}

/// Which format a text is written in; text that is no quantity counts as [`Format::DecimalSi`].
#[must_use]
pub fn format_of(text: &str) -> Format {
    parse::format(text).unwrap_or(Format::DecimalSi)
}

/// The quantity as Kubernetes writes it: in its own format, without a fraction and with the largest unit.
pub fn canonical(quantity: &Quantity) -> Result<Quantity, QuantityError> {
    parse::read(quantity.0.trim()).map(|(amount, format)| amount.to_quantity(format))
}

/// Numbers straight from a [`Quantity`].
pub trait QuantityExt {
    /// The exact number.
    fn amount(&self) -> Result<Amount, QuantityError>;

    /// The number of whole bytes, or other units, that covers the quantity.
    fn bytes(&self) -> Result<i64, QuantityError>;
}

impl QuantityExt for Quantity {
    fn amount(&self) -> Result<Amount, QuantityError> {
        Amount::of(self)
    }

    fn bytes(&self) -> Result<i64, QuantityError> {
        self.amount()?.checked_value().ok_or(QuantityError::Overflow)
    }
}

/// A size with its sign, unless it does not fit.
fn signed(negative: bool, size: u128) -> Option<i128> {
    if negative { 0_i128.checked_sub_unsigned(size) } else { size.try_into().ok() }
}

/// The nearest number an `i64` can hold.
fn clamp(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}
