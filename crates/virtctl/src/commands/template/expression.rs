//! Random values from expressions such as `vm-[a-z0-9]{8}`.

use crate::names::NoRandomness;

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";
const SYMBOLS: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
const LONGEST: usize = 255;

/// Why an expression has no value.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The brackets hold nothing to choose from.
    #[error("malformed ranges syntax: {0}")]
    Ranges(String),
    /// The braces do not hold a number.
    #[error("malformed length syntax: {0}")]
    Length(String),
    /// The number is too small or too large.
    #[error("range must be within [1-{LONGEST}] characters: {0}")]
    TooLong(usize),
    /// The range starts or ends with something else than a letter or digit.
    #[error("invalid character in range: {0}")]
    Character(char),
    /// The range goes backwards.
    #[error("invalid range specified: {0}-{1}")]
    Backwards(char, char),
    /// The system gives no random numbers.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

/// One of the letters at random.
pub type Pick<'a> = dyn FnMut(&[u8]) -> Result<char, NoRandomness> + 'a;

/// The text with each `[ranges]{length}` in it replaced by that many random characters.
pub fn value(text: &str, pick: &mut Pick<'_>) -> Result<String, Error> {
    let mut made = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('[') {
        let (before, at) = rest.split_at(start);
        made.push_str(before);
        let Some((ranges, length, after)) = split(at) else {
            made.push('[');
            rest = &at[1..];
            continue;
        };
        let alphabet = alphabet(ranges)?;
        for _ in 0..parsed(length)? {
            made.push(pick(alphabet.as_bytes())?);
        }
        rest = after;
    }
    made.push_str(rest);
    Ok(made)
}

/// The two parts of an expression that stands at the start of the text, and what follows it.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let (ranges, rest) = text.strip_prefix('[')?.split_once("]{")?;
    let (length, rest) = rest.split_once('}')?;
    let may_range = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'\\';
    let may_count = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let whole = !ranges.is_empty() && !length.is_empty();
    (whole && ranges.bytes().all(may_range) && length.bytes().all(may_count))
        .then_some((ranges, length, rest))
}

fn parsed(length: &str) -> Result<usize, Error> {
    let number = length.parse().map_err(|_| Error::Length(length.to_owned()))?;
    if (1..=LONGEST).contains(&number) { Ok(number) } else { Err(Error::TooLong(number)) }
}

/// The characters to choose from, each once.
fn alphabet(ranges: &str) -> Result<String, Error> {
    let mut all = String::new();
    let bytes = ranges.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        at += match (bytes[at], bytes.get(at + 1), bytes.get(at + 2)) {
            (b'\\', Some(class @ (b'w' | b'd' | b'a' | b'A')), _) => {
                all.push_str(&self::class(*class));
                2
            }
            (from, Some(b'-'), Some(to)) => {
                all.push_str(&between(char::from(from), char::from(*to))?);
                3
            }
            (first, ..) if first.is_ascii_alphanumeric() => {
                let run = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
                all.push_str(&ranges[at..at + run]);
                run
            }
            _ => 1,
        };
    }
    let mut letters: Vec<char> = all.chars().collect();
    letters.sort_unstable();
    letters.dedup();
    if letters.is_empty() { Err(Error::Ranges(ranges.to_owned())) } else { Ok(letters.into_iter().collect()) }
}

fn class(letter: u8) -> String {
    match letter {
        b'w' => format!("{LETTERS}{DIGITS}_"),
        b'd' => DIGITS.to_owned(),
        b'a' => format!("{LETTERS}{DIGITS}"),
        _ => SYMBOLS.to_owned(),
    }
}

/// Letters and digits from one to another: small letters come before large ones, and these before digits.
fn between(from: char, to: char) -> Result<String, Error> {
    let all = format!("{LETTERS}{DIGITS}");
    let place = |letter: char| all.find(letter).ok_or(Error::Character(letter));
    let (first, last) = (place(from)?, place(to)?);
    if first > last { Err(Error::Backwards(from, to)) } else { Ok(all[first..=last].to_owned()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Takes the last letter of the alphabet.
    fn last(letters: &[u8]) -> Result<char, NoRandomness> {
        letters.last().map(|byte| char::from(*byte)).ok_or(NoRandomness)
    }

    #[test]
    fn expressions_have_values() {
        for (text, expected) in [
            ("plain", "plain"),
            ("test[0-9]{1}x", "test9x"),
            ("[0-1]{8}", "11111111"),
            ("0x[A-F0-9]{4}", "0xFFFF"),
            ("[a-z]{2}-[a-c]{2}", "zz-cc"),
            ("[\\d]{1}[\\w]{1}[\\a]{1}[\\A]{1}", "9zz~"),
            ("[abc]{1}", "c"),
            ("[a-z", "[a-z"),
            ("[a-z]", "[a-z]"),
            ("[a z]{2}", "[a z]{2}"),
            ("[[a-b]{2}]", "[bb]"),
            ("[x-]{1}", "x"),
        ] {
            assert_eq!(value(text, &mut last).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, problem) in [
            ("[-]{1}", "malformed ranges syntax: -"),
            ("[a-z]{x}", "malformed length syntax: x"),
            ("[a-z]{0}", "range must be within [1-255] characters: 0"),
            ("[a-z]{256}", "range must be within [1-255] characters: 256"),
            ("[z-a]{1}", "invalid range specified: z-a"),
            ("[--a]{1}", "invalid character in range: -"),
        ] {
            assert_eq!(value(text, &mut last).unwrap_err().to_string(), problem, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_value_or_an_error(text in ".*") {
            let _ = value(&text, &mut last);
        }

        #[test]
        fn values_are_as_long_as_asked_for(length in 1usize..=255) {
            let made = value(&format!("[a-z]{{{length}}}"), &mut last).unwrap();
            prop_assert_eq!(made.len(), length);
        }
    }
}
