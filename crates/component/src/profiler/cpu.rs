//! The profiler of this process: there is one, since there is one timer for it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use super::pprof::{Counts, Profile};
use super::programs::Programs;
use super::signal::{self, LARGEST, Line, PERIOD};
use super::unwind::{Snapshot, Unwinder};

/// How many different stacks are remembered: some ten megabytes.
const MOST_STACKS: usize = 20_000;

static STATE: Mutex<State> = Mutex::new(State::Nothing);

enum State {
    /// Nothing was ever asked for.
    Nothing,
    /// A profile is being taken.
    Running { line: &'static Line, counter: JoinHandle<()>, record: Arc<Record> },
    /// The last one.
    Taken { record: Arc<Record>, lasted: Duration, lost: u64 },
}

/// What a profile is made of.
struct Record {
    /// Without the tables, which only the thread that counts needs.
    programs: Programs,
    began: SystemTime,
    since: Instant,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    counts: Counts,
    /// How many looks found a new stack when there were too many already.
    forgotten: u64,
}

/// Forgets what there is and begins anew.
pub(super) fn start() -> io::Result<()> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut state = lock(&STATE);
    end(&mut state);
    *state = State::Nothing;
    let (line, programs) = (Line::open()?, Programs::read()?);
    let record = Arc::new(Record {
        programs: programs.without_tables(),
        began: SystemTime::now(),
        since: Instant::now(),
        seen: Mutex::default(),
    });
    let counter = std::thread::Builder::new().name("profiler".to_owned()).spawn({
        let record = record.clone();
        move || count(line, &programs, &record)
    })?;
    let begun = line.begin();
    *state = State::Running { line, counter, record };
    if begun.is_err() {
        end(&mut state);
        *state = State::Nothing;
    }
    begun
}

/// Ends, and keeps what was found until the next start.
pub(super) fn stop() {
    end(&mut lock(&STATE));
}

/// What was found so far; none if nothing was started.
pub(super) fn profile() -> io::Result<Option<Vec<u8>>> {
    let state = lock(&STATE);
    let (record, lasted, lost) = match &*state {
        State::Nothing => return Ok(None),
        State::Running { record, .. } => (record.clone(), record.since.elapsed(), signal::lost()),
        State::Taken { record, lasted, lost } => (record.clone(), *lasted, *lost),
    };
    drop(state);
    let seen = lock(&record.seen);
    let missing = lost + seen.forgotten;
    let profile = Profile {
        counts: &seen.counts,
        programs: &record.programs,
        began: record.began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
        lasted,
        period: PERIOD,
        comment: (missing > 0).then(|| format!("{missing} samples are missing")),
    };
    profile.pack().map(Some)
}

fn end(state: &mut State) {
    *state = match std::mem::replace(state, State::Nothing) {
        State::Running { line, counter, record } => {
            match line.end() {
                // It ends when it hears that.
                Ok(()) => drop(counter.join()),
                Err(error) => tracing::warn!("the profiler does not end: {error}"),
            }
            let lasted = record.since.elapsed();
            State::Taken { record, lasted, lost: signal::lost() }
        }
        other => other,
    };
}

/// Counts what comes over the line until an empty message.
fn count(line: &Line, programs: &Programs, record: &Record) {
    let mut message = vec![0; LARGEST];
    let mut unwinder = Unwinder::default();
    loop {
        let length = match line.receiver.recv(&mut message) {
            Ok(0) => return,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return tracing::warn!("the profiler hears nothing: {error}"),
        };
        if let Some(snapshot) = Snapshot::of(&message[..length]) {
            let stack = unwinder.stack(&snapshot, programs);
            lock(&record.seen).add(stack);
        }
    }
}

impl Seen {
    fn add(&mut self, stack: Vec<u64>) {
        let full = self.counts.len() >= MOST_STACKS;
        match self.counts.get_mut(stack.as_slice()) {
            Some(count) => *count += 1,
            None if full => self.forgotten += 1,
            None => {
                self.counts.insert(stack.into(), 1);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
