//! Tables of what Kubernetes makes of a text, and properties that hold for every amount.

use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use proptest::prelude::*;

use super::{Amount, Format, QuantityError, QuantityExt, canonical, format_of};
use Format::{BinarySi, DecimalExponent, DecimalSi};

fn amount(text: &str) -> Amount {
    Amount::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn reads_what_kubernetes_reads() {
    let cases: &[(&str, i128)] = &[
        ("0", 0),
        ("-0", 0),
        ("0e99999999999", 0),
        ("0.000Gi", 0),
        ("1", 1_000_000_000),
        ("+1", 1_000_000_000),
        ("-1", -1_000_000_000),
        ("007", 7_000_000_000),
        ("1.", 1_000_000_000),
        (".5", 500_000_000),
        ("-.5", -500_000_000),
        ("1n", 1),
        ("1u", 1_000),
        ("100m", 100_000_000),
        ("2k", 2_000_000_000_000),
        ("3M", 3_000_000_000_000_000),
        ("1E", 1_000_000_000_000_000_000_000_000_000),
        ("1e3", 1_000_000_000_000),
        ("1E3", 1_000_000_000_000),
        ("1e+3", 1_000_000_000_000),
        ("5E-2", 50_000_000),
        ("1.5e1", 15_000_000_000),
        ("1Ki", 1_024_000_000_000),
        ("1.5Gi", 1_610_612_736_000_000_000),
        ("-1.5Gi", -1_610_612_736_000_000_000),
        ("0.001Ki", 1_024_000_000),
        ("0.1n", 1),
        ("-0.1n", -1),
        ("1.0000000001", 1_000_000_001),
        ("-1.0000000001", -1_000_000_001),
        ("1e-99999999999", 1),
        ("0.0000000001Ki", 103),
        // Binary stops at the largest i64.
        ("7Ei", 8_070_450_532_247_928_832_000_000_000),
        ("8Ei", 9_223_372_036_854_775_807_000_000_000),
        ("-8Ei", -9_223_372_036_854_775_807_000_000_000),
        // The largest and smallest amounts.
        ("170141183460469231731687303715884105727n", i128::MAX),
        ("-170141183460469231731687303715884105728n", i128::MIN),
    ];
    for &(text, nanos) in cases {
        assert_eq!(amount(text).nanos(), nanos, "{text}");
    }
}

#[test]
fn refuses_what_is_no_quantity() {
    let cases = [
        "",
        " ",
        "+",
        "-",
        ".",
        "--1",
        "+-1",
        "1-",
        "1..5",
        "1.1.M",
        "1 Gi",
        " 1",
        "1 ",
        "1GiB",
        "1gi",
        "1K",
        "1i",
        "1mi",
        "0.1am",
        "1e",
        "1e-",
        "1e1.5",
        "1ee3",
        "1e3Ki",
        "Ki",
        "e3",
        "aoeu",
        "0x10",
        "1_000",
        "1,5",
        "١",
        "∞",
        "1e99999999999999999999",
    ];
    for text in cases {
        assert_eq!(Amount::parse(text), Err(QuantityError::Malformed(text.to_owned())), "{text:?}");
        assert_eq!(format_of(text), DecimalSi, "{text:?}");
    }
}

#[test]
fn refuses_what_is_too_large() {
    for text in ["1e30", "-1e30", "1e999999999", "170141183460469231731687303715884105728n", "1000000000000E"]
    {
        assert_eq!(Amount::parse(text), Err(QuantityError::Overflow), "{text}");
    }
    assert_eq!(format_of("1e30"), DecimalExponent);
}

#[test]
fn long_texts_take_no_time() {
    let digits = "9".repeat(100_000);
    let start = Instant::now();
    assert_eq!(Amount::parse(&digits), Err(QuantityError::Overflow));
    assert_eq!(amount(&format!("{digits}Gi")).value(), i64::MAX);
    assert_eq!(amount(&format!("0.{digits}")), Amount::from_int(1));
    assert_eq!(amount(&format!("0.{digits}Ki")), Amount::from_int(1024));
    assert_eq!(amount(&format!("{}1", "0".repeat(100_000))), Amount::from_int(1));
    assert_eq!(amount(&format!("0.{}1", "0".repeat(100_000))).nanos(), 1);
    assert_eq!(amount(&format!("{digits}e-100000")), Amount::from_int(1));
    assert_eq!(amount(&format!("1{}e-100000", "0".repeat(100_000))), Amount::from_int(1));
    assert!(matches!(Amount::parse(&format!("{digits}x")), Err(QuantityError::Malformed(_))));
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn writes_what_kubernetes_writes() {
    let cases = [
        ("0", "0"),
        ("0Gi", "0"),
        ("+1", "1"),
        ("1.", "1"),
        (".5", "500m"),
        ("0.1", "100m"),
        ("100m", "100m"),
        ("1.5", "1500m"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("1024", "1024"),
        ("1000k", "1M"),
        ("10000000", "10M"),
        ("-1500k", "-1500k"),
        ("0.1n", "1n"),
        ("1000E", "1000E"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("1e4", "10e3"),
        ("0.1e0", "100e-3"),
        ("5e0", "5"),
        ("1.5Gi", "1536Mi"),
        ("1024Ki", "1Mi"),
        ("1000Ki", "1000Ki"),
        ("-2048Mi", "-2Gi"),
        ("0.5Ki", "512"),
        ("0.0001Ki", "102400u"),
        ("1.0001Ki", "1024102400u"),
        ("8Ei", "9223372036854775807"),
    ];
    for (text, expected) in cases {
        assert_eq!(canonical(&Quantity(text.to_owned())), Ok(Quantity(expected.to_owned())), "{text}");
    }
}

#[test]
fn writes_an_amount_in_any_format() {
    let cases = [
        (1 << 30, BinarySi, "1Gi"),
        (1 << 30, DecimalSi, "1073741824"),
        (1 << 30, DecimalExponent, "1073741824"),
        (5_000_000, BinarySi, "5000000"),
        (5_000_000, DecimalSi, "5M"),
        (5_000_000, DecimalExponent, "5e6"),
        (1023, BinarySi, "1023"),
        (1000, BinarySi, "1k"),
        (-1000, BinarySi, "-1k"),
        (-1024, BinarySi, "-1Ki"),
        (i64::MIN, BinarySi, "-9223372036854775808"),
    ];
    for (units, format, expected) in cases {
        assert_eq!(Amount::from_int(units).to_quantity(format).0, expected, "{units} {format:?}");
    }
}

#[test]
fn remembers_the_format() {
    let cases = [
        ("1", DecimalSi),
        ("1m", DecimalSi),
        ("1E", DecimalSi),
        ("1e3", DecimalExponent),
        ("1E3", DecimalExponent),
        ("1Ki", BinarySi),
        ("0Ki", BinarySi),
        ("0.5Ki", BinarySi),
        ("0.0001Ki", DecimalSi),
    ];
    for (text, format) in cases {
        assert_eq!(format_of(text), format, "{text}");
    }
}

#[test]
fn rounds_integers_away_from_zero() {
    let cases =
        [("0", 0, 0), ("1n", 1, 1), ("-1n", -1, -1), ("1.5", 2, 1500), ("-1.5", -2, -1500), ("2", 2, 2000)];
    for (text, value, milli) in cases {
        assert_eq!((amount(text).value(), amount(text).milli_value()), (value, milli), "{text}");
        assert_eq!(amount(text).checked_value(), Some(value), "{text}");
    }
    assert_eq!(amount("1E").milli_value(), i64::MAX);
    assert_eq!(amount("-1E").milli_value(), i64::MIN);
    assert_eq!(amount("10E").value(), i64::MAX);
    assert_eq!(amount("10E").checked_value(), None);
    assert_eq!(amount("9223372036854775807").checked_value(), Some(i64::MAX));
    assert_eq!(amount("9223372036854775807.1").checked_value(), None);
}

#[test]
fn computes() {
    assert_eq!(amount("1Gi").checked_add(amount("512Mi")), Some(amount("1.5Gi")));
    assert_eq!(amount("100m").checked_sub(amount("1")), Some(amount("-900m")));
    assert_eq!(amount("100m").checked_mul_int(-3), Some(amount("-300m")));
    assert_eq!(amount("1Gi").checked_mul_ratio(3, 2), Some(amount("1.5Gi")));
    assert_eq!(amount("1n").checked_mul_ratio(1, 3), Some(amount("1n")));
    assert_eq!(amount("-4n").checked_mul_ratio(1, 3), Some(amount("-2n")));
    assert_eq!(amount("-4n").checked_mul_ratio(-1, 3), Some(amount("2n")));
    assert_eq!(amount("1").checked_mul_ratio(1, 0), None);
    let largest = Amount::from_nanos(i128::MAX);
    assert_eq!(largest.checked_add(amount("1n")), None);
    assert_eq!(Amount::from_nanos(i128::MIN).checked_sub(amount("1n")), None);
    assert_eq!(largest.checked_mul_int(2), None);
    assert_eq!(largest.checked_mul_ratio(2, 1), None);
    assert_eq!(largest.checked_mul_ratio(i64::MAX, i64::MAX), Some(largest));
    assert!(amount("-1").is_negative() && !amount("0").is_negative() && Amount::zero().is_zero());
    assert!(amount("1Gi") > amount("1G") && amount("-1") < Amount::default());
    assert_eq!(Amount::from_milli(1500), amount("1.5"));
}

#[test]
fn reads_bytes_of_a_quantity() {
    assert_eq!(Quantity("64Mi".to_owned()).bytes(), Ok(67_108_864));
    assert_eq!(Quantity(" 1500m\n".to_owned()).bytes(), Ok(2));
    assert_eq!(Quantity("10E".to_owned()).bytes(), Err(QuantityError::Overflow));
    assert_eq!(Quantity("much".to_owned()).amount(), Err(QuantityError::Malformed("much".to_owned())));
}

fn any_amount() -> impl Strategy<Value = Amount> {
    prop_oneof![
        any::<i128>().prop_map(Amount::from_nanos),
        any::<i64>().prop_map(Amount::from_int),
        any::<i64>().prop_map(Amount::from_milli),
        (any::<i16>(), 0_u32..48).prop_map(|(count, bits)| Amount::from_int(i64::from(count) << bits)),
    ]
}

proptest! {
    #[test]
    fn every_format_keeps_the_amount(amount in any_amount()) {
        for format in [BinarySi, DecimalSi, DecimalExponent] {
            let quantity = amount.to_quantity(format);
            prop_assert_eq!(Amount::of(&quantity), Ok(amount));
            prop_assert!(!quantity.0.contains('.'));
        }
    }

    #[test]
    fn canonical_is_stable(text in r"[+-]?[0-9]{1,20}(\.[0-9]{0,12})?(Ki|Mi|Gi|Ti|Ei|n|u|m|k|M|G|e-?[0-9])?") {
        if let Ok(once) = canonical(&Quantity(text)) {
            prop_assert_eq!(canonical(&once), Ok(once.clone()));
        }
    }

    #[test]
    fn adding_is_commutative(a in any_amount(), b in any_amount()) {
        prop_assert_eq!(a.checked_add(b), b.checked_add(a));
        if let Some(sum) = a.checked_add(b) {
            prop_assert_eq!(sum.checked_sub(b), Some(a));
        }
    }

    #[test]
    fn a_ratio_of_one_changes_nothing(amount in any_amount(), n in 1..i64::MAX) {
        prop_assert_eq!(amount.checked_mul_ratio(n, n), Some(amount));
        prop_assert_eq!(amount.checked_mul_ratio(n, 1), amount.checked_mul_int(n));
    }

    #[test]
    fn no_text_panics(text in any::<String>(), close in r"[-+0-9.eEinumkKMGTP]{0,24}") {
        for text in [text, close] {
            if let Ok(amount) = Amount::parse(&text) {
                prop_assert_eq!(Amount::of(&amount.to_quantity(format_of(&text))), Ok(amount));
            }
        }
    }
}
