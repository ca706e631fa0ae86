//! Putting the threads of a machine with dedicated CPUs where they belong.

use kubevirt_domain::pinning::Pinning;
use kubevirt_host::threads::{self, ThreadError};
use kubevirt_qemu::machine::{CpuThread, IoThread};

use crate::error::CommandError;
use crate::running::Running;

/// Priority of a virtual CPU that must not wait: the lowest of those that run before everything ordinary.
const REALTIME: u8 = 1;

/// Where one thread runs.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    thread: u32,
    cpus: Vec<u32>,
    realtime: bool,
}

/// Pins the threads of a machine, if it has CPUs of its own. Asked again, it does the same again.
pub(crate) async fn pin(running: &Running) -> Result<(), CommandError> {
    let Some(pinning) = running.domain().pinning else { return Ok(()) };
    let cpus = running.machine.cpus().await?;
    let io = running.machine.io_threads().await?;
    let all = threads::of(running.process.pid()).map_err(CommandError::io("cannot list QEMU's threads"))?;
    let all: Vec<u32> = all.into_iter().map(|thread| thread.id).collect();
    for place in places(&pinning, &cpus, &io, &all) {
        let done = threads::pin(place.thread, &place.cpus).and_then(|()| {
            if place.realtime { threads::make_realtime(place.thread, REALTIME) } else { Ok(()) }
        });
        match done {
            // QEMU's helpers come and go.
            Err(ThreadError::Gone { .. }) => {}
            done => done.map_err(|error| CommandError::Unsupported(format!("dedicated CPUs: {error}")))?,
        }
    }
    Ok(())
}

/// Where each thread runs: virtual CPUs and IO threads on their own, all others with the emulator.
fn places(pinning: &Pinning, cpus: &[CpuThread], io: &[IoThread], all: &[u32]) -> Vec<Place> {
    let mut places = Vec::new();
    for cpu in cpus {
        let Some(host) = pinning.vcpus.get(cpu.index as usize) else { continue };
        let realtime = pinning.realtime.contains(&cpu.index);
        places.push(Place { thread: cpu.thread_id.unsigned_abs(), cpus: vec![*host], realtime });
    }
    for thread in io {
        let number = thread.id.strip_prefix("iothread").and_then(|number| number.parse().ok());
        if let Some(host) = number.and_then(|number: u32| pinning.io_threads.get(&number)) {
            let thread = thread.thread_id.unsigned_abs();
            places.push(Place { thread, cpus: host.clone(), realtime: false });
        }
    }
    let emulator = if pinning.emulator.is_empty() { &pinning.vcpus } else { &pinning.emulator };
    for thread in all {
        if !places.iter().any(|place| place.thread == *thread) {
            places.push(Place { thread: *thread, cpus: emulator.clone(), realtime: false });
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn each_thread_has_its_place() {
        let pinning = Pinning {
            vcpus: vec![4, 5],
            emulator: vec![7],
            io_threads: BTreeMap::from([(1, vec![6])]),
            realtime: BTreeSet::from([1]),
        };
        let cpus: Vec<CpuThread> = serde_json::from_value(serde_json::json!([
            {"cpu-index": 0, "thread-id": 100, "qom-path": "/a"},
            {"cpu-index": 1, "thread-id": 101, "qom-path": "/b"},
        ]))
        .unwrap();
        let io: Vec<IoThread> =
            serde_json::from_value(serde_json::json!([{"id": "iothread1", "thread-id": 102}])).unwrap();
        let place = |thread, cpu, realtime| Place { thread, cpus: vec![cpu], realtime };
        assert_eq!(
            places(&pinning, &cpus, &io, &[99, 100, 101, 102]),
            [place(100, 4, false), place(101, 5, true), place(102, 6, false), place(99, 7, false)]
        );
        let shared = Pinning { emulator: vec![], ..pinning };
        assert_eq!(places(&shared, &[], &[], &[99])[0].cpus, [4, 5]);
    }
}
