//! Random endings of names, and secrets.

use ring::rand::{SecureRandom, SystemRandom};

/// The letters of generated names in Kubernetes: no vowels, so that no words come out.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// The letters of tokens.
const ALPHANUMERIC: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A random ending of a name.
pub fn suffix(length: usize) -> String {
    (0..length).map(|_| char::from(LETTERS[fastrand::usize(..LETTERS.len())])).collect()
}

/// The system has no randomness to give.
#[derive(Debug, thiserror::Error)]
#[error("the system's random number generator failed")]
pub struct NoRandomness;

/// One of the letters, each as likely as the others, from the system's generator for secrets.
pub fn secret_letter(letters: &[u8]) -> Result<char, NoRandomness> {
    let system = SystemRandom::new();
    let mut byte = [0];
    // Bytes past the last whole multiple would favour the first letters.
    let limit = 256 - 256 % letters.len().clamp(1, 256);
    loop {
        system.fill(&mut byte).map_err(|_| NoRandomness)?;
        let value = usize::from(byte[0]);
        if value < limit {
            return letters
                .get(value % letters.len().max(1))
                .map(|byte| char::from(*byte))
                .ok_or(NoRandomness);
        }
    }
}

/// A token that nobody guesses.
pub fn token(length: usize) -> Result<String, NoRandomness> {
    (0..length).map(|_| secret_letter(ALPHANUMERIC)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_differ() {
        let (one, other) = (token(20).unwrap(), token(20).unwrap());
        assert_eq!(one.len(), 20);
        assert_ne!(one, other);
        assert!(one.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(suffix(5).len(), 5);
        assert!(secret_letter(b"").is_err());
        assert_eq!(secret_letter(b"a").unwrap(), 'a');
    }
}
