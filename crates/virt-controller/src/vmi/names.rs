//! Names and numbers that follow from what they are for, so that one made twice is made once.

/// What Kubernetes makes random suffixes of: no vowels, so no words.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The claim for firmware and TPM state. It outlives instances, so its owner is part of it.
pub fn state_claim(vmi: &str, owner_uid: &str) -> String {
    let mut rest = hash(owner_uid.as_bytes());
    let mut suffix = String::with_capacity(5);
    for _ in 0..5 {
        suffix.push(char::from(LETTERS[(rest % 27) as usize]));
        rest /= 27;
    }
    format!("persistent-state-for-{vmi}-{suffix}")
}

/// A number that follows from the bytes, in this and every later release: FNV-1a, with its bits mixed once more.
pub fn hash(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    let hash =
        bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_told_by_its_owner() {
        assert_eq!(state_claim("web", "a"), state_claim("web", "a"));
        assert_ne!(state_claim("web", "a"), state_claim("web", "b"));
        assert!(state_claim("web", "a").starts_with("persistent-state-for-web-"));
    }
}
