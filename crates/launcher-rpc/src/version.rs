//! Finding a common version of the protocol.

/// Versions of the commands that we know.
pub const COMMANDS: [u32; 1] = [1];

/// Versions of the events that we know.
pub const EVENTS: [u32; 1] = [1];

/// The two sides have no version in common.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no common version of the protocol: we know {ours:?}, the other side {theirs:?}")]
pub struct NoCommonVersion {
    ours: Vec<u32>,
    theirs: Vec<u32>,
}

/// The highest version that both sides know.
pub fn highest_common(ours: &[u32], theirs: &[u32]) -> Result<u32, NoCommonVersion> {
    let common = ours.iter().filter(|version| theirs.contains(version)).max().copied();
    common.ok_or_else(|| NoCommonVersion { ours: ours.to_vec(), theirs: theirs.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::highest_common;

    #[test]
    fn the_highest_common_version_is_spoken() {
        let cases: [(&[u32], &[u32], Option<u32>); 5] = [
            (&[1], &[1], Some(1)),
            (&[1], &[3, 2, 1], Some(1)),
            (&[1, 2, 4], &[3, 2, 1], Some(2)),
            (&[1], &[2], None),
            (&[1], &[], None),
        ];
        for (ours, theirs, expected) in cases {
            assert_eq!(highest_common(ours, theirs).ok(), expected, "{ours:?} {theirs:?}");
        }
    }
}
