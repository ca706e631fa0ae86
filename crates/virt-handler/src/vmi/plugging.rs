//! What users hear of volumes and interfaces that could not be plugged or unplugged.

use std::collections::BTreeMap;

/// So many tries take about 10 s.
const LONG: u32 = 13;

/// How often each thing was found to be wrong, since it last was right.
#[derive(Clone, Debug, Default)]
pub struct Plugging(BTreeMap<String, u32>);

impl Plugging {
    /// What the user hears of after one more try: what does not work at once, what others have to bring first once it
    /// takes long, and each only once.
    pub fn told(&mut self, problems: &[String], missing: &[String]) -> Vec<String> {
        let mut found = BTreeMap::new();
        let mut told = Vec::new();
        let all = problems.iter().map(|why| (why, 1)).chain(missing.iter().map(|why| (why, LONG)));
        for (why, when) in all {
            let tries = self.0.get(why).map_or(1, |tries| tries.saturating_add(1));
            if tries == when {
                told.push(why.clone());
            }
            found.insert(why.clone(), tries);
        }
        self.0 = found;
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_told_once_and_what_is_missing_late() {
        let text = |what: &str| what.to_owned();
        let mut plugging = Plugging::default();
        let mut told = Vec::new();
        for number in 1..50 {
            let problems = match number {
                1..=9 => vec![text("at first")],
                20..=30 => vec![text("later"), text("too")],
                _ => vec![],
            };
            let heard = plugging.told(&problems, &[text("missing")]);
            told.extend(heard.into_iter().map(|what| (number, what)));
        }
        let expected = [(1, "at first"), (13, "missing"), (20, "later"), (20, "too")];
        assert_eq!(told, expected.map(|(number, what)| (number, text(what))));
        // What was right meanwhile is told anew.
        assert_eq!(plugging.told(&[text("at first")], &[]), ["at first"]);
    }
}
