//! How the virtual CPUs of an instance type become sockets, cores and threads.

use kubevirt_api::preference::{PreferredCpuTopology, SpreadAcross, VirtualMachinePreferenceSpec};

/// The threads of each core where CPUs are spread over all three levels.
const THREADS_PER_CORE: i32 = 2;

/// What a preference wants virtual CPUs to look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Each is a socket.
    Sockets,
    /// Each is a core of one socket.
    Cores,
    /// Each is a thread of one core.
    Threads,
    /// They are spread over several levels.
    Spread(Spread),
    /// It does not matter.
    Any,
}

/// How virtual CPUs are spread over levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// How many of the next level each of the first has.
    pub ratio: i32,
    /// The levels.
    pub across: SpreadAcross,
}

/// A number of sockets, cores in each, and threads in each of those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The sockets.
    pub sockets: i32,
    /// The cores of a socket.
    pub cores: i32,
    /// The threads of a core.
    pub threads: i32,
}

impl Topology {
    /// What a preference wants; sockets without one.
    pub fn preferred(preference: Option<&VirtualMachinePreferenceSpec>) -> Self {
        let cpu = preference.and_then(|preference| preference.cpu.as_ref());
        match cpu.and_then(|cpu| cpu.preferred_cpu_topology.as_ref()) {
            Some(PreferredCpuTopology::PreferCores | PreferredCpuTopology::Cores) => Self::Cores,
            Some(PreferredCpuTopology::PreferThreads | PreferredCpuTopology::Threads) => Self::Threads,
            Some(PreferredCpuTopology::PreferSpread | PreferredCpuTopology::Spread) => {
                Self::Spread(preference.map(Spread::of).unwrap_or_default())
            }
            Some(PreferredCpuTopology::PreferAny | PreferredCpuTopology::Any) => Self::Any,
            _ => Self::Sockets,
        }
    }

    /// The layout of this many virtual CPUs, unless they cannot be spread evenly.
    pub fn layout(&self, cpus: i32) -> Option<Layout> {
        let one = Layout { sockets: 1, cores: 1, threads: 1 };
        match self {
            Self::Sockets | Self::Any => Some(Layout { sockets: cpus, ..one }),
            Self::Cores => Some(Layout { cores: cpus, ..one }),
            Self::Threads => Some(Layout { threads: cpus, ..one }),
            Self::Spread(Spread { ratio, across }) => match across {
                SpreadAcross::SocketsCores => {
                    Some(Layout { sockets: divided(cpus, *ratio)?, cores: *ratio, ..one })
                }
                SpreadAcross::CoresThreads => {
                    Some(Layout { cores: divided(cpus, *ratio)?, threads: *ratio, ..one })
                }
                SpreadAcross::SocketsCoresThreads => Some(Layout {
                    sockets: divided(divided(cpus, THREADS_PER_CORE)?, *ratio)?,
                    cores: *ratio,
                    threads: THREADS_PER_CORE,
                }),
                SpreadAcross::Other(_) => None,
            },
        }
    }
}

impl Default for Spread {
    fn default() -> Self {
        Self { ratio: 2, across: SpreadAcross::SocketsCores }
    }
}

impl Spread {
    /// How a preference spreads CPUs if it does so.
    pub fn of(preference: &VirtualMachinePreferenceSpec) -> Self {
        let options = preference.cpu.as_ref().and_then(|cpu| cpu.spread_options.as_ref());
        let older = preference.prefer_spread_socket_to_core_ratio.filter(|ratio| *ratio != 0);
        let default = Self::default();
        Self {
            ratio: options.and_then(|options| options.ratio).or(older).unwrap_or(default.ratio),
            across: options.and_then(|options| options.across.clone()).unwrap_or(default.across),
        }
    }
}

/// The quotient, where nothing remains and there is something to divide by.
fn divided(number: i32, by: i32) -> Option<i32> {
    (by > 0 && number % by == 0).then(|| number / by)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::read;

    fn layout(cpus: i32, preference: Value) -> Option<[i32; 3]> {
        let layout = Topology::preferred(Some(&read(preference))).layout(cpus);
        layout.map(|Layout { sockets, cores, threads }| [sockets, cores, threads])
    }

    #[test]
    fn cpus_take_the_preferred_shape() {
        let topology = |word: &str| json!({ "cpu": { "preferredCPUTopology": word } });
        let spread =
            |options: Value| json!({ "cpu": { "preferredCPUTopology": "spread", "spreadOptions": options } });
        let older = |ratio: u32| json!({ "preferSpreadSocketToCoreRatio": ratio, "cpu": { "preferredCPUTopology": "preferSpread" } });
        let cases = [
            ("default", 4, json!({}), Some([4, 1, 1])),
            ("sockets", 4, topology("sockets"), Some([4, 1, 1])),
            ("older sockets", 4, topology("preferSockets"), Some([4, 1, 1])),
            ("cores", 4, topology("cores"), Some([1, 4, 1])),
            ("older cores", 4, topology("preferCores"), Some([1, 4, 1])),
            ("threads", 4, topology("threads"), Some([1, 1, 4])),
            ("older threads", 4, topology("preferThreads"), Some([1, 1, 4])),
            ("any", 4, topology("any"), Some([4, 1, 1])),
            ("older any", 4, topology("preferAny"), Some([4, 1, 1])),
            ("unknown", 4, topology("rings"), Some([4, 1, 1])),
            ("spread", 6, topology("spread"), Some([3, 2, 1])),
            ("older spread", 6, topology("preferSpread"), Some([3, 2, 1])),
            ("uneven spread", 5, topology("spread"), None),
            ("spread of one", 1, topology("spread"), None),
            ("older ratio", 6, older(3), Some([2, 3, 1])),
            ("older ratio of nothing", 6, older(0), Some([3, 2, 1])),
            ("ratio", 6, spread(json!({ "ratio": 3 })), Some([2, 3, 1])),
            ("ratio of nothing", 6, spread(json!({ "ratio": 0 })), None),
            ("cores and threads", 6, spread(json!({ "across": "CoresThreads" })), Some([1, 3, 2])),
            ("uneven cores and threads", 7, spread(json!({ "across": "CoresThreads" })), None),
            (
                "all levels",
                12,
                spread(json!({ "across": "SocketsCoresThreads", "ratio": 3 })),
                Some([2, 3, 2]),
            ),
            ("odd over all levels", 5, spread(json!({ "across": "SocketsCoresThreads", "ratio": 1 })), None),
            (
                "uneven over all levels",
                10,
                spread(json!({ "across": "SocketsCoresThreads", "ratio": 3 })),
                None,
            ),
        ];
        for (name, cpus, preference, expected) in cases {
            assert_eq!(layout(cpus, preference), expected, "{name}");
        }
        assert_eq!(Topology::preferred(None), Topology::Sockets);
    }

    proptest! {
        #[test]
        fn no_cpu_is_lost_or_made_up(cpus in 0..1024_i32, ratio: i32, across in 0..3_usize) {
            let across = SpreadAcross::from(SpreadAcross::KNOWN[across]);
            if let Some(layout) = Topology::Spread(Spread { ratio, across }).layout(cpus) {
                let product = i64::from(layout.sockets) * i64::from(layout.cores) * i64::from(layout.threads);
                prop_assert_eq!(product, i64::from(cpus));
            }
        }
    }
}
