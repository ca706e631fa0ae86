//! What a guest is told: of its host, and of its own machine.

use kubevirt_launcher_rpc::stats::DomainStats;

use super::document::{Metric, Value, document};
use super::host::Host;

/// Everything there is to tell, as a document.
pub fn report(node: &str, product: &str, stats: &DomainStats, host: &Host) -> String {
    let named = |name, text: &str| Metric::of_host(name, "", Value::text(text));
    let mut all = vec![
        named("HostName", node),
        named("HostSystemInfo", "linux"),
        named("VirtualizationVendor", "kubevirt.io"),
        named("VirtProductInfo", product),
    ];
    all.extend(machine(stats));
    all.extend(host.metrics());
    document(&all)
}

#[expect(clippy::cast_precision_loss, reason = "a nanosecond is lost after months")]
fn machine(stats: &DomainStats) -> [Metric; 4] {
    let time = stats.vcpus.iter().fold(0, |sum: u64, vcpu| sum.saturating_add(vcpu.time));
    // A machine without a balloon has all its memory always.
    let memory = stats.memory.actual_balloon.or(stats.memory.domain).unwrap_or_default() / 1024;
    [
        Metric::of_machine("TotalCPUTime", "s", Value::Real(time as f64 / 1e9)),
        Metric::of_machine("ResourceProcessorLimit", "", Value::count(stats.vcpus.len())),
        Metric::of_machine("PhysicalMemoryAllocatedToVirtualSystem", "KiB", Value::Size(memory)),
        // Nobody takes memory away from a guest, so what it has is also what it can get.
        Metric::of_machine("ResourceMemoryLimit", "KiB", Value::Size(memory)),
    ]
}

#[cfg(test)]
mod tests {
    use kubevirt_launcher_rpc::stats::{MemoryStats, VcpuStats};

    use super::*;

    fn vcpu(time: u64) -> VcpuStats {
        VcpuStats { time, ..VcpuStats::default() }
    }

    #[test]
    fn a_machine_is_told_by_its_cpus_and_its_memory() {
        let mib = |count: u64| Some(count << 20);
        let both = MemoryStats { actual_balloon: mib(64), domain: mib(128), ..MemoryStats::default() };
        let plain = MemoryStats { domain: mib(128), ..MemoryStats::default() };
        for (vcpus, memory, time, count, size) in [
            (vec![vcpu(1_500_000_000), vcpu(250_000_000)], both, 1.75, 2, 65_536),
            (vec![vcpu(u64::MAX), vcpu(1)], plain, 18_446_744_073.709_553, 2, 131_072),
            (vec![], MemoryStats::default(), 0.0, 0, 0),
        ] {
            let stats = DomainStats { vcpus, memory, ..DomainStats::default() };
            let expected = [
                Metric::of_machine("TotalCPUTime", "s", Value::Real(time)),
                Metric::of_machine("ResourceProcessorLimit", "", Value::Count(count)),
                Metric::of_machine("PhysicalMemoryAllocatedToVirtualSystem", "KiB", Value::Size(size)),
                Metric::of_machine("ResourceMemoryLimit", "KiB", Value::Size(size)),
            ];
            assert_eq!(machine(&stats), expected);
        }
    }

    #[test]
    fn a_report_begins_with_who_the_host_is() {
        let text = report("a<b", "QEMU 7.2.0", &DomainStats::default(), &Host::default());
        let values = text.lines().filter_map(|line| line.trim().strip_prefix("<value>"));
        let values: Vec<&str> = values.filter_map(|value| value.strip_suffix("</value>")).collect();
        let expected = ["a&lt;b", "linux", "kubevirt.io", "QEMU 7.2.0", "0.000000", "0", "0", "0", "0"];
        assert_eq!(values, expected);
    }
}
