//! Dates, times and durations.

/// `YYYY-MM-DD`, and a day that exists.
pub(super) fn is_date(text: &str) -> bool {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text.as_bytes() else {
        return false;
    };
    let (Some(century), Some(years)) = (two_digits(y1, y2), two_digits(y3, y4)) else {
        return false;
    };
    let (Some(month), Some(day)) = (two_digits(m1, m2), two_digits(d1, d2)) else {
        return false;
    };
    (1..=days_of(month, u32::from(century) * 100 + u32::from(years))).contains(&day)
}

fn two_digits(tens: u8, ones: u8) -> Option<u8> {
    let digits = tens.is_ascii_digit() && ones.is_ascii_digit();
    digits.then(|| (tens - b'0') * 10 + (ones - b'0'))
}

fn days_of(month: u8, year: u32) -> u8 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

/// RFC 3339, as loosely as the API server reads it: without leap seconds, any sign before the
/// fraction, any offset, and nothing after a second `T` counts.
pub(super) fn is_date_time(text: &str) -> bool {
    let mut parts = text.split(['t', 'T']);
    match (parts.next(), parts.next()) {
        (Some(date), Some(time)) => is_date(date) && is_time(time),
        _ => false,
    }
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else {
        return false;
    };
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = clock.as_bytes() else {
        return false;
    };
    let in_range = |tens, ones, max| two_digits(tens, ones).is_some_and(|value| value <= max);
    if !(in_range(h1, h2, 23) && in_range(m1, m2, 59) && in_range(s1, s2, 59)) {
        return false;
    }
    if is_zone(rest) {
        return true;
    }
    let mut chars = rest.chars();
    chars.next();
    let fraction = chars.as_str();
    let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    zone.len() < fraction.len() && is_zone(zone)
}

fn is_zone(text: &str) -> bool {
    match *text.as_bytes() {
        [b'z' | b'Z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => two_digits(h1, h2).is_some() && two_digits(m1, m2).is_some(),
        _ => false,
    }
}

/// A duration as Go writes them (`1h30m`), or any text with a number and a unit in it
/// (`2 days ago`).
pub(super) fn is_duration(text: &str) -> bool {
    is_go_duration(text) || has_number_with_unit(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let nanoseconds = match unit {
            "ns" => 1.0,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return false,
        };
        let Ok(amount) = number.parse::<f64>() else {
            return false;
        };
        total += amount * nanoseconds;
        rest = tail;
    }
    total <= i64::MAX as f64
}

fn has_number_with_unit(text: &str) -> bool {
    let mut rest = text;
    let mut known = false;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let number = &rest[start..];
        let after = number.trim_start_matches(|c: char| c.is_ascii_digit());
        let unit = after.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == '\u{b5}';
        let end = unit.find(|c| !is_letter(c)).unwrap_or(unit.len());
        if end > 0 {
            if number[..number.len() - after.len()].parse::<i64>().is_err() {
                return false;
            }
            known |= is_unit(&unit[..end].to_ascii_lowercase());
            rest = &unit[end..];
        } else {
            rest = after;
        }
    }
    known
}

fn is_unit(unit: &str) -> bool {
    let short = ["ns", "us", "\u{b5}s", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    let long = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    short.contains(&unit) || long.iter().any(|prefix| unit.starts_with(prefix))
}
