//! What the kernel tells of QEMU and its threads.

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Nanoseconds of its own code.
    pub(super) user: u64,
    /// Nanoseconds of the kernel's code on its behalf.
    pub(super) system: u64,
    /// Bytes that it has in memory.
    pub(super) resident: u64,
}

/// Nanoseconds of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// It ran.
    pub(super) ran: u64,
    /// It could have run, but others did.
    pub(super) waited: u64,
}

/// What a process has used so far.
pub(super) fn usage(pid: u32) -> Option<Usage> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let page = u64::try_from(rustix::param::page_size()).ok()?;
    parse_usage(&text, rustix::param::clock_ticks_per_second(), page)
}

/// How long a thread ran.
pub(super) fn thread_times(pid: u32, thread: i32) -> Option<Times> {
    parse_times(&std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?)
}

/// How long a thread waited, where the kernel counts that.
pub(super) fn thread_wait(pid: u32, thread: i32) -> Option<u64> {
    parse_wait(&std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/sched")).ok()?)
}

/// The second field is a name in brackets, which may hold anything.
fn parse_usage(text: &str, ticks: u64, page: u64) -> Option<Usage> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    let time = |place: usize| number(place)?.checked_mul(SECOND / ticks.max(1));
    Some(Usage { user: time(11)?, system: time(12)?, resident: number(21)?.checked_mul(page)? })
}

fn parse_times(text: &str) -> Option<Times> {
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    Some(Times { ran: numbers.next()?.ok()?, waited: numbers.next()?.ok()? })
}

/// Milliseconds with a fraction; older kernels write a longer name.
fn parse_wait(text: &str) -> Option<u64> {
    let line = text.lines().filter_map(|line| line.split_once(':'));
    let mut of_name = line.filter(|(name, _)| name.trim().trim_start_matches("se.statistics.") == "wait_sum");
    let milliseconds: f64 = of_name.next()?.1.trim().parse().ok()?;
    Some((milliseconds * 1e6) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_used_time_and_memory() {
        let text = "4242 (qemu) (x) S 1 4242 4242 0 -1 1077936384 1 0 2 0 150 25 0 0 20 0 5 0 900 1234567 300 \
                    18446744073709551615 0";
        let expected = Usage { user: 1_500_000_000, system: 250_000_000, resident: 300 * 4096 };
        assert_eq!(parse_usage(text, 100, 4096), Some(expected));
        for text in ["", "1 (x) S 1 2", "no brackets"] {
            assert_eq!(parse_usage(text, 100, 4096), None, "{text:?}");
        }
    }

    #[test]
    fn a_thread_has_times() {
        assert_eq!(parse_times("123 45 6\n"), Some(Times { ran: 123, waited: 45 }));
        assert_eq!(parse_times("123"), None);
        let sched = "qemu (1, #threads: 3)\n---\nse.statistics.wait_sum   :   1.500000\nnr_switches : 3\n";
        assert_eq!(parse_wait(sched), Some(1_500_000));
        assert_eq!(parse_wait("wait_sum      :     0.25\n"), Some(250_000));
        assert_eq!(parse_wait("nr_switches : 3\n"), None);
    }

    #[test]
    fn our_own_process_can_be_read() {
        let pid = std::process::id();
        assert!(usage(pid).unwrap().resident > 0);
        assert!(thread_times(pid, i32::try_from(pid).unwrap()).is_some());
    }
}
