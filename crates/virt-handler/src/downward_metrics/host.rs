//! What the host uses, from what its kernel says.

use std::collections::BTreeSet;
use std::path::Path;

use super::document::{Metric, Value};

/// What the kernel says; what it does not say is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// `/proc/stat`.
    pub times: String,
    /// `/proc/meminfo`.
    pub memory: String,
    /// `/proc/vmstat`.
    pub paging: String,
    /// Which package each CPU is in.
    pub packages: Vec<String>,
    /// Ticks of its clock in a second.
    pub ticks: u64,
    /// Bytes of a page.
    pub page: u64,
    /// Seconds since 1970.
    pub now: i64,
}

impl Host {
    /// Asks the kernel.
    pub fn ask(proc: &Path, sys: &Path) -> Self {
        let text = |name: &str| std::fs::read_to_string(proc.join(name)).unwrap_or_default();
        Self {
            times: text("stat"),
            memory: text("meminfo"),
            paging: text("vmstat"),
            packages: packages(&sys.join("devices/system/cpu")),
            ticks: rustix::param::clock_ticks_per_second(),
            page: rustix::param::page_size() as u64,
            now: jiff::Timestamp::now().as_second(),
        }
    }

    /// All that is known of it.
    pub fn metrics(&self) -> Vec<Metric> {
        let mut all = Vec::new();
        let packages: BTreeSet<&str> = self.packages.iter().map(|package| package.trim()).collect();
        if !packages.is_empty() {
            all.push(Metric::of_host("NumberOfPhysicalCPUs", "", Value::count(packages.len())));
        }
        if let Some(time) = cpu_time(&self.times, self.ticks) {
            all.push(Metric::of_host("TotalCPUTime", "s", Value::Real(time)));
        }
        let memory = memory(&self.memory).into_iter().chain(paging(&self.paging, self.page));
        all.extend(memory.map(|(name, size)| Metric::of_host(name, "KiB", Value::Size(size))));
        all.push(Metric::of_host("Time", "s", Value::Count(self.now)));
        all
    }
}

/// The package of each CPU that is there. One that is switched off is in none.
fn packages(cpus: &Path) -> Vec<String> {
    let folders = std::fs::read_dir(cpus).into_iter().flatten().flatten();
    let is_cpu = |name: &str| {
        name.strip_prefix("cpu").is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let cpus = folders.filter(|folder| folder.file_name().to_str().is_some_and(is_cpu));
    let package = |cpu: std::fs::DirEntry| cpu.path().join("topology/physical_package_id");
    cpus.filter_map(|cpu| std::fs::read_to_string(package(cpu)).ok()).collect()
}

/// Seconds that all CPUs together worked, whether for users or for the kernel.
#[expect(clippy::cast_precision_loss, reason = "a fraction of a second is lost after centuries")]
fn cpu_time(text: &str, ticks: u64) -> Option<f64> {
    let all = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let mut times = all.split_ascii_whitespace().map(str::parse::<u64>);
    let [user, nice, system] = [times.next()?.ok()?, times.next()?.ok()?, times.next()?.ok()?];
    Some(user.saturating_add(nice).saturating_add(system) as f64 / ticks.max(1) as f64)
}

/// Memory in KiB.
fn memory(text: &str) -> Vec<(&'static str, u64)> {
    if number(text, "MemTotal:").is_none() {
        return Vec::new();
    }
    let of = |name: &str| number(text, name).unwrap_or_default();
    let (free, total) = (of("MemFree:"), of("MemTotal:"));
    let (swap_free, swap_total) = (of("SwapFree:"), of("SwapTotal:"));
    // What the kernel keeps for files is there for whoever needs memory.
    let idle = [free, of("Buffers:"), of("Cached:")].into_iter().fold(0, u64::saturating_add);
    vec![
        ("FreePhysicalMemory", free),
        ("FreeVirtualMemory", free.saturating_add(swap_free)),
        ("MemoryAllocatedToVirtualServers", total.saturating_sub(idle)),
        (
            "UsedVirtualMemory",
            total.saturating_add(swap_total).saturating_sub(idle).saturating_sub(of("SwapCached:")),
        ),
    ]
}

/// What was swapped in and out since the host started, in KiB.
fn paging(text: &str, page: u64) -> Vec<(&'static str, u64)> {
    let size = |name: &str| Some(number(text, name)?.saturating_mul(page) / 1024);
    let (read, written) = (size("pswpin"), size("pswpout"));
    read.map(|size| ("PagedInMemory", size))
        .into_iter()
        .chain(written.map(|size| ("PagedOutMemory", size)))
        .collect()
}

/// The number in the line that begins with this word.
fn number(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    lines.find_map(|mut words| (words.next() == Some(name)).then(|| words.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 20 3 4000 50 6 7 8 9 10\ncpu0 1 2 3 4\nintr 5\nctxt 6\n";
    const MEMINFO: &str = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    500 kB\n\
        Buffers:          20 kB\nCached:           80 kB\nSwapCached:        5 kB\nSwapTotal:       200 kB\n\
        SwapFree:        150 kB\nHugePages_Total:   3\n";
    const VMSTAT: &str = "nr_free_pages 1\npgpgin 9\npswpin 3\npswpout 5\npswpout_other 7\n";

    #[test]
    fn cpu_times_are_added() {
        for (text, ticks, expected) in [
            (STAT, 100, Some(1.23)),
            (STAT, 1000, Some(0.123)),
            (STAT, 0, Some(123.0)),
            ("cpu0 1 2 3\ncpu  0 0 0 9\n", 100, Some(0.0)),
            ("cpu  1 2\n", 100, None),
            ("cpu  1 2 x\n", 100, None),
            ("cpu0 1 2 3\n", 100, None),
            ("", 100, None),
        ] {
            assert_eq!(cpu_time(text, ticks), expected, "{text:?}");
        }
    }

    #[test]
    fn memory_is_told_apart() {
        let all = [
            ("FreePhysicalMemory", 100),
            ("FreeVirtualMemory", 250),
            ("MemoryAllocatedToVirtualServers", 800),
            ("UsedVirtualMemory", 995),
        ];
        assert_eq!(memory(MEMINFO), all);
        // A host without swap, and one that cannot be believed.
        let none = [100, 100, 900, 900];
        let sizes = |text: &str| memory(text).into_iter().map(|(_, size)| size).collect::<Vec<_>>();
        assert_eq!(sizes("MemTotal: 1000 kB\nMemFree: 100 kB\n"), none);
        assert_eq!(sizes("MemTotal: 10 kB\nMemFree: 100 kB\n"), [100, 100, 0, 0]);
        assert!(memory("").is_empty());
    }

    #[test]
    fn pages_are_counted_in_kib() {
        for (text, page, expected) in [
            (VMSTAT, 4096, vec![("PagedInMemory", 12), ("PagedOutMemory", 20)]),
            (VMSTAT, 65536, vec![("PagedInMemory", 192), ("PagedOutMemory", 320)]),
            ("pswpout 1\n", 4096, vec![("PagedOutMemory", 4)]),
            ("pswpin\npswpout x\n", 4096, vec![]),
            ("", 4096, vec![]),
        ] {
            assert_eq!(paging(text, page), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let host = Host { now: 7, ..Host::default() };
        assert_eq!(host.metrics(), [Metric::of_host("Time", "s", Value::Count(7))]);
        let packages = ["0\n", "1\n", "0\n"].map(str::to_owned).to_vec();
        let host = Host { packages, ..host };
        assert_eq!(host.metrics()[0], Metric::of_host("NumberOfPhysicalCPUs", "", Value::Count(2)));
    }

    #[test]
    fn this_kernel_says_all() {
        let host = Host::ask(Path::new("/proc"), Path::new("/sys"));
        let paged = paging(&host.paging, host.page).len();
        assert_eq!(host.metrics().len(), 6 + usize::from(!host.packages.is_empty()) + paged, "{host:?}");
        let nobody = Host::ask(Path::new("/nowhere"), Path::new("/nowhere"));
        assert_eq!(nobody.metrics().len(), 1, "{nobody:?}");
    }
}
