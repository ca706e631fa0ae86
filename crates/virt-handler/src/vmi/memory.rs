//! What the handler remembers of an instance from one look at it to the next. All of it can be found out again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use kubevirt_network::Wiring;

use super::plugging::Plugging;
use super::waiting::Waiting;
use crate::prepare::{HotplugState, Progress};

/// The first pause before a guest goes on whose disk failed.
const FIRST_RESUME: Duration = Duration::from_secs(10);

/// The longest.
const LAST_RESUME: Duration = Duration::from_secs(180);

/// What was made ready on the node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OnNode {
    /// How each network is wired up; none as long as nobody looked.
    pub network: Option<Vec<Wiring>>,
    /// Plugged volumes that the pod has.
    pub mounted: BTreeSet<String>,
    /// Fingerprints of container disks, by volume.
    pub checksums: BTreeMap<String, u32>,
    /// Fingerprints of a kernel and an initial memory disk that are started directly.
    pub kernel: (Option<u32>, Option<u32>),
    /// The security context of the launcher.
    pub selinux: Option<String>,
}

impl OnNode {
    /// Takes in how far plugged volumes have got.
    pub fn plugged(&mut self, states: &[HotplugState]) {
        let mounted = states.iter().filter(|state| state.progress == Progress::Mounted);
        self.mounted = mounted.map(|state| state.volume.clone()).collect();
    }
}

/// What is remembered of one instance.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// What was made ready on the node.
    pub on_node: OnNode,
    /// What the launcher was last asked for and did, as a fingerprint.
    pub synced: Option<u64>,
    /// When the guest was last asked to shut down.
    pub asked: Option<Timestamp>,
    /// When a guest that stands still since a disk failed may go on, and the pause before that.
    pub resume: Option<(Timestamp, Duration)>,
    /// The version of the instance that we wrote over: while we still see it, we look at the past.
    pub overwritten: Option<String>,
    /// What is not ready yet.
    pub waiting: Waiting,
    /// What could not be plugged or unplugged.
    pub plugging: Plugging,
    /// How often the guest's system gave up, as far as that was counted.
    pub panics: u32,
    /// Whether the fingerprints of container disks were asked for.
    pub checksums_asked: bool,
}

impl Memory {
    /// Notes that a guest may try again, and when it may do so the next time.
    pub fn resumed(&mut self, now: Timestamp) {
        let pause = self.resume.map_or(FIRST_RESUME, |(_, pause)| (pause * 2).min(LAST_RESUME));
        self.resume = Some((now.checked_add(pause).unwrap_or(now), pause));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_limit() {
        let mut memory = Memory::default();
        let mut pauses = Vec::new();
        for _ in 0..7 {
            memory.resumed(Timestamp::UNIX_EPOCH);
            pauses.push(memory.resume.unwrap().1.as_secs());
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 180, 180]);
    }
}
