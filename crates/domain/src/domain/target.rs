//! Names that guests are likely to give their disks, such as `vda`.

/// The name of a disk by its number: `0` is `a`, `25` is `z`, `26` is `aa`.
pub fn name_of(prefix: &str, index: u32) -> String {
    let (mut letters, mut rest) = (Vec::new(), index + 1);
    while rest > 0 {
        rest -= 1;
        letters.push(char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
    }
    prefix.chars().chain(letters.into_iter().rev()).collect()
}

/// The number of a disk by its name, if the name has this prefix.
pub fn index_of(prefix: &str, name: &str) -> Option<u32> {
    let letter = |letter: u8| letter.is_ascii_lowercase().then(|| u32::from(letter - b'a') + 1);
    let letters = name.strip_prefix(prefix)?.bytes();
    let sum =
        letters.into_iter().try_fold(0_u32, |sum, byte| sum.checked_mul(26)?.checked_add(letter(byte)?))?;
    sum.checked_sub(1).filter(|index| *index < 16384)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        for (index, name) in [(0, "vda"), (25, "vdz"), (26, "vdaa"), (701, "vdzz"), (702, "vdaaa")] {
            assert_eq!(name_of("vd", index), name);
            assert_eq!(index_of("vd", name), Some(index));
        }
        for wrong in ["vd", "vdA", "sda", ""] {
            assert_eq!(index_of("vd", wrong), None, "{wrong:?}");
        }
    }
}
