//! How long tests go on that could go on forever: a little in `make test`, as long as one likes in `make soak`.

use anyhow::{Context, Result};

/// How many rounds a test makes: `SOAK_ROUNDS`, or so many.
pub fn rounds(usual: u64) -> Result<u64> {
    Ok(number("SOAK_ROUNDS")?.unwrap_or(usual))
}

/// A sequence that looks like none, and is the same for the same `SOAK_SEED`.
pub struct Chance(u64);

impl Chance {
    /// Begins with `SOAK_SEED`, or always the same.
    pub fn new() -> Result<Self> {
        let seed = number("SOAK_SEED")?.unwrap_or(1);
        eprintln!("SOAK_SEED={seed} repeats this");
        Ok(Self(seed))
    }

    /// A number below this one.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % end
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        &among[self.below(among.len())]
    }

    /// All of them, in an order of its own.
    pub fn shuffle<T: Clone>(&mut self, all: &[T]) -> Vec<T> {
        let mut all = all.to_vec();
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last + 1));
        }
        all
    }
}

fn number(name: &str) -> Result<Option<u64>> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty());
    text.map(|text| text.parse().with_context(|| format!("{name}={text} is no number"))).transpose()
}
