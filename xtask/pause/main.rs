//! The first process of every pod: holds its namespaces, collects ended processes and leaves on SIGTERM.
//!
//! A program of its own, linked statically: it is all that its image holds.

const SIG_BLOCK: i32 = 0;
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;
const SIGCHLD: i32 = 17;
const WNOHANG: i32 = 1;

unsafe extern "C" {
    fn sigemptyset(set: *mut [u64; 16]) -> i32;
    fn sigaddset(set: *mut [u64; 16], signal: i32) -> i32;
    fn sigprocmask(how: i32, set: *const [u64; 16], old: *mut [u64; 16]) -> i32;
    fn sigwait(set: *const [u64; 16], signal: *mut i32) -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
}

fn main() {
    let mut signals = [0; 16];
    let mut signal = 0;
    // SAFETY: all pointers are to locals of the size that the C library expects, or null where it allows it.
    unsafe {
        sigemptyset(&mut signals);
        for one in [SIGINT, SIGTERM, SIGCHLD] {
            sigaddset(&mut signals, one);
        }
        sigprocmask(SIG_BLOCK, &signals, std::ptr::null_mut());
        while signal != SIGINT && signal != SIGTERM {
            sigwait(&signals, &mut signal);
            while waitpid(-1, std::ptr::null_mut(), WNOHANG) > 0 {}
        }
    }
}
