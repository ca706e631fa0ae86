//! Names as the two sets of names can hold them; the real ones are in Rock Ridge fields.

use std::collections::HashSet;

/// Longest name of Joliet, in units of 16 bits.
const LONGEST_JOLIET: usize = 64;

/// A short name in capitals, as every reader of the format knows them.
pub fn primary(name: &str, is_file: bool, taken: &mut HashSet<Vec<u8>>) -> Vec<u8> {
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if is_file && !stem.is_empty() => (stem, extension),
        _ => (name, ""),
    };
    let capitals = |text: &str, most: usize| -> String {
        text.chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
            .take(most)
            .collect()
    };
    let (stem, extension) = (capitals(stem, 8), capitals(extension, 3));
    unique(taken, |number| {
        let number = number.map_or(String::new(), |number| number.to_string());
        let stem = &stem[..stem.len().min(8_usize.saturating_sub(number.len()))];
        if is_file { format!("{stem}{number}.{extension};1") } else { format!("{stem}{number}") }.into_bytes()
    })
}

/// A name as Windows sees it.
pub fn joliet(name: &str, is_file: bool, taken: &mut HashSet<Vec<u8>>) -> Vec<u8> {
    let clean = |c: char| match c {
        '*' | '/' | ':' | ';' | '?' | '\\' => '_',
        c if c.is_control() => '_',
        c => c,
    };
    unique(taken, |number| {
        let end = number.map_or(String::new(), |number| format!("~{number}"));
        let room = LONGEST_JOLIET - end.len();
        let mut units = 0;
        let cut: String = name
            .chars()
            .map(clean)
            .take_while(|c| {
                units += c.len_utf16();
                units <= room
            })
            .collect();
        wide(&format!("{cut}{end}{}", if is_file { ";1" } else { "" }))
    })
}

/// Text in units of 16 bits, the high byte first.
pub fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

/// The first of a row of names that is not taken.
fn unique(taken: &mut HashSet<Vec<u8>>, name: impl Fn(Option<u32>) -> Vec<u8>) -> Vec<u8> {
    let found = std::iter::once(None)
        .chain((1..).map(Some))
        .map(name)
        .find(|name| !taken.contains(name))
        .unwrap_or_default();
    taken.insert(found.clone());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_capitals_and_differ() {
        let mut taken = HashSet::new();
        let cases = [
            ("user-data", true, "USER_DAT.;1"),
            ("user_data", true, "USER_DA1.;1"),
            ("user.data", true, "USER.DAT;1"),
            ("user.data2", true, "USER1.DAT;1"),
            (".hidden", true, "_HIDDEN.;1"),
            ("openstack", false, "OPENSTAC"),
            ("ä", true, "_.;1"),
        ];
        for (name, is_file, expected) in cases {
            assert_eq!(primary(name, is_file, &mut taken), expected.as_bytes(), "{name}");
        }
    }

    #[test]
    fn joliet_names_are_cut_and_cleaned() {
        let mut taken = HashSet::new();
        let long = "x".repeat(70);
        let cases = [
            ("Meta-Data.json", "Meta-Data.json;1".to_owned()),
            ("a:b", "a_b;1".into()),
            ("a*b", "a_b~1;1".into()),
            (&long, format!("{};1", "x".repeat(64))),
            (&format!("{long}y"), format!("{}~1;1", "x".repeat(62))),
            (&format!("{}😀", "y".repeat(63)), format!("{};1", "y".repeat(63))),
        ];
        for (name, expected) in cases {
            assert_eq!(joliet(name, true, &mut taken), wide(&expected), "{name}");
        }
    }
}
