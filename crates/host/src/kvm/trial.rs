//! The trial on x86: one SSE instruction and a loop, on a thread that can be stopped.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use vmm_sys_util::signal::{Killable, SIGRTMIN, register_signal_handler, unblock_signal};

use super::guest::{Exit, Guest};

/// Rounds of the guest's loop: a fraction of a millisecond on a CPU, a third of a second where each is emulated.
const STEPS: u32 = 100_000;

/// CPU time that the guest may take. Not time on the clock: a busy host is not a broken one.
const BUDGET: Duration = Duration::from_millis(100);

/// Time on the clock after which a guest hangs.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time between two signals to a guest that hangs, and how many it gets.
const INSIST: (Duration, u32) = (Duration::from_millis(10), 100);

type Outcome = Result<(Exit, Duration), String>;

/// Runs the trial.
pub fn attempt(device: &Path) -> Result<(), String> {
    verdict(run_bounded(device, program(), PATIENCE))
}

/// Adds 1 and 1 with SSE, counts to [`STEPS`], writes the sum of both to port 16.
fn program() -> Vec<u8> {
    let [a, b, c, d] = STEPS.to_le_bytes();
    [
        &[0xb8, 1, 0, 0, 0][..],   // mov eax, 1
        &[0x66, 0x0f, 0x6e, 0xc0], // movd xmm0, eax
        &[0x66, 0x0f, 0xfe, 0xc0], // paddd xmm0, xmm0
        &[0x66, 0x0f, 0x7e, 0xc0], // movd eax, xmm0
        &[0x31, 0xdb],             // xor ebx, ebx
        &[0xff, 0xc3],             // again: inc ebx
        &[0x81, 0xfb, a, b, c, d], // cmp ebx, STEPS
        &[0x75, 0xf6],             // jne again
        &[0x01, 0xd8],             // add eax, ebx
        &[0xe7, 16],               // out 16, eax
    ]
    .concat()
}

/// What the outcome means.
fn verdict(outcome: Outcome) -> Result<(), String> {
    let (exit, used) = outcome?;
    match exit {
        Exit::Answered(sum) if sum != STEPS + 2 => Err(format!("a test guest counted wrongly, to {sum}")),
        Exit::Answered(_) if used > BUDGET => Err(format!(
            "a test guest took {} ms for {STEPS} steps, more than {} ms",
            used.as_millis(),
            BUDGET.as_millis()
        )),
        Exit::Answered(_) => Ok(()),
        Exit::InternalError(1) => {
            Err("KVM failed to emulate an instruction of a test guest (internal error 1)".into())
        }
        Exit::InternalError(number) => Err(format!("a test guest ended in KVM's internal error {number}")),
        Exit::EntryFailed(reason) => Err(format!("the CPU did not enter a test guest (reason {reason:#x})")),
        Exit::Stopped => Err(format!("a test guest did not end within {} s", PATIENCE.as_secs())),
        Exit::Other(what) => Err(format!("a test guest ended unexpectedly: {what}")),
    }
}

/// Runs code as a guest, stopped when patience ends.
fn run_bounded(device: &Path, code: Vec<u8>, patience: Duration) -> Outcome {
    // A signal that a thread handles makes KVM return; what the handler does is of no matter.
    register_signal_handler(signal(), ignore)
        .map_err(|error| format!("a test guest cannot be stopped: {error}"))?;
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = channel();
    let (device, told) = (device.to_owned(), Arc::clone(&stop));
    let run = move || {
        let _ = unblock_signal(signal());
        let _ = sender.send(Guest::new(&device, &code).map(|mut guest| guest.run(&told)));
    };
    let thread = Builder::new()
        .name("kvm-probe".into())
        .spawn(run)
        .map_err(|error| format!("a test guest cannot be started: {error}"))?;
    match receiver.recv_timeout(patience) {
        Err(RecvTimeoutError::Timeout) => {
            stop.store(true, Ordering::SeqCst);
            interrupt(&receiver, thread)
        }
        outcome => join(thread, outcome.ok()),
    }
}

/// Signals until the thread listens, for a signal that comes just before it enters the guest is lost.
fn interrupt(receiver: &Receiver<Outcome>, thread: JoinHandle<()>) -> Outcome {
    let (pause, times) = INSIST;
    for _ in 0..times {
        let _ = thread.kill(signal());
        match receiver.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => {}
            outcome => return join(thread, outcome.ok()),
        }
    }
    Err("a test guest can neither run nor be stopped".into())
}

fn join(thread: JoinHandle<()>, outcome: Option<Outcome>) -> Outcome {
    let died = || Err("a test guest's thread died".into());
    match thread.join() {
        Ok(()) => outcome.unwrap_or_else(died),
        Err(_) => died(),
    }
}

fn signal() -> i32 {
    SIGRTMIN() + 3
}

extern "C" fn ignore(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(300);
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn judges_how_a_guest_ended() {
        let ms = Duration::from_millis;
        for (outcome, expected) in [
            (Ok((Exit::Answered(STEPS + 2), ms(1))), None),
            (Ok((Exit::Answered(STEPS + 2), ms(100))), None),
            (
                Ok((Exit::Answered(STEPS + 2), ms(308))),
                Some("took 308 ms for 100000 steps, more than 100 ms"),
            ),
            (Ok((Exit::Answered(STEPS + 1), ms(1))), Some("counted wrongly")),
            (Ok((Exit::InternalError(1), ms(1))), Some("failed to emulate an instruction")),
            (Ok((Exit::InternalError(3), ms(1))), Some("internal error 3")),
            (Ok((Exit::EntryFailed(0x8000_0021), ms(1))), Some("0x80000021")),
            (Ok((Exit::Stopped, ms(1999))), Some("did not end within 2 s")),
            (Ok((Exit::Other("Shutdown".into()), ms(1))), Some("unexpectedly: Shutdown")),
            (Err("a machine cannot be created".into()), Some("a machine cannot be created")),
        ] {
            match (verdict(outcome), expected) {
                (Ok(()), None) => {}
                (Err(words), Some(expected)) => assert!(words.contains(expected), "{words}"),
                (verdict, expected) => panic!("{verdict:?} instead of {expected:?}"),
            }
        }
    }

    /// The guest that never ends: on any KVM that makes machines, it is stopped and its thread is gone.
    #[test]
    fn stops_a_guest_that_hangs() {
        match run_bounded(Path::new("/dev/kvm"), vec![0xeb, 0xfe], SHORT) {
            Ok((exit, _)) => assert_eq!(exit, Exit::Stopped),
            Err(reason) => println!("KVM makes no machine here: {reason}"),
        }
    }

    /// The guest that writes at once, without SSE: even a KVM that emulates all of it gets there.
    #[test]
    fn hears_the_answer() {
        let code = vec![0xb8, 42, 0, 0, 0, 0xe7, 16];
        match run_bounded(Path::new("/dev/kvm"), code, LONG) {
            Ok((exit, _)) => assert_eq!(exit, Exit::Answered(42)),
            Err(reason) => println!("KVM makes no machine here: {reason}"),
        }
    }
}
