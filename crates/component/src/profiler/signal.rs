//! The timer that interrupts who uses the CPU, and what is done then: a copy of the stack is sent to a socket.
//!
//! Interrupted code may hold any lock and be in the middle of asking for memory. So nothing is done but system calls
//! that POSIX allows in handlers of signals. The kernel copies the stack: where it ends, the call fails, and nobody has
//! read what is not there.
#![expect(unsafe_code, reason = "the standard library has neither signals nor timers")]

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use super::unwind::Registers;

/// How often a second of CPU time is interrupted: as often as programs in Go are.
pub(super) const PERIOD: Duration = Duration::from_millis(10);
/// How much of a stack is looked at: the innermost callers of most tasks.
const PAGES: usize = 8;
const PAGE: usize = 4096;
/// The largest message.
pub(super) const LARGEST: usize = size_of::<Registers>() + PAGES * PAGE;

/// Where the handler sends copies to; nowhere while it is negative.
static SENDER: AtomicI32 = AtomicI32::new(-1);
/// How many copies could not be sent.
static LOST: AtomicU64 = AtomicU64::new(0);

/// The two ends of the way from interrupted threads to the one that counts.
pub(super) struct Line {
    sender: UnixDatagram,
    /// Where copies come out.
    pub(super) receiver: UnixDatagram,
}

/// The only line. It is never closed: a handler that is late must not write to what has its number by then.
static LINE: OnceLock<Line> = OnceLock::new();

impl Line {
    /// The line, without what was left in it.
    pub(super) fn open() -> io::Result<&'static Self> {
        let line = match LINE.get() {
            Some(line) => line,
            None => {
                let (sender, receiver) = UnixDatagram::pair()?;
                LINE.get_or_init(|| Self { sender, receiver })
            }
        };
        line.receiver.set_nonblocking(true)?;
        while line.receiver.recv(&mut []).is_ok() {}
        line.receiver.set_nonblocking(false)?;
        Ok(line)
    }

    /// Interrupts from now on.
    pub(super) fn begin(&self) -> io::Result<()> {
        handle()?;
        LOST.store(0, Ordering::Relaxed);
        SENDER.store(self.sender.as_raw_fd(), Ordering::Release);
        set_timer(PERIOD)
    }

    /// Interrupts no more, and says so to the other end by an empty message.
    pub(super) fn end(&self) -> io::Result<()> {
        SENDER.store(-1, Ordering::Release);
        let disarmed = set_timer(Duration::ZERO);
        self.sender.send(&[])?;
        disarmed
    }
}

/// How many copies could not be sent since the beginning.
pub(super) fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Whether anybody is interrupted.
#[cfg(test)]
pub(super) fn is_armed() -> bool {
    SENDER.load(Ordering::Relaxed) >= 0
}

/// Has the signal handled. That is never undone, since a last signal may be under way, and would end the process.
fn handle() -> io::Result<()> {
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = interrupted;
    // SAFETY: all bits of the structure may be zero: no flags, and no other signal is held back.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    // Calls that were interrupted go on as if nothing had been.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the structure outlives the call, and the handler does only what handlers may; see above.
    let result = unsafe { libc::sigaction(libc::SIGPROF, &raw const action, std::ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn set_timer(period: Duration) -> io::Result<()> {
    let every = libc::timeval { tv_sec: 0, tv_usec: period.subsec_micros().into() };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: the structure outlives the call, which only reads it.
    let result = unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, std::ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The handler. It runs in the thread that was interrupted.
extern "C" fn interrupted(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let sender = SENDER.load(Ordering::Acquire);
    if sender < 0 || context.is_null() {
        return;
    }
    // SAFETY: the C library keeps the last error of this thread there. The interrupted code may be about to look at it.
    let error = unsafe { *libc::__errno_location() };
    // SAFETY: a handler with SA_SIGINFO gets the registers of what it interrupted, and nobody else uses them meanwhile.
    let registers = unsafe { registers(context) };
    if !send(sender, &registers) {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = error };
}

/// Sends the registers and as much of the stack as there is.
fn send(sender: c_int, registers: &Registers) -> bool {
    let stack = registers.stack as usize;
    let first = PAGE - stack % PAGE;
    for pages in (0..PAGES).rev() {
        let mut parts = [
            libc::iovec {
                iov_base: std::ptr::from_ref(registers).cast_mut().cast(),
                iov_len: size_of::<Registers>(),
            },
            libc::iovec { iov_base: stack as *mut c_void, iov_len: first + pages * PAGE },
        ];
        // SAFETY: all bits of the structure may be zero: no address and no control data.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = parts.len();
        // SAFETY: the kernel reads the parts, and refuses a part that is not mapped. It waits for nothing.
        let sent =
            unsafe { libc::sendmsg(sender, &raw const message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
        if sent >= 0 {
            return true;
        }
        // SAFETY: the C library keeps the last error of this thread there.
        if unsafe { *libc::__errno_location() } != libc::EFAULT {
            return false;
        }
    }
    false
}

/// The registers in what a handler is given.
#[cfg(target_arch = "x86_64")]
unsafe fn registers(context: *const c_void) -> Registers {
    // SAFETY: the caller has it from the kernel.
    let all = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let of = |register: c_int| all[register as usize].cast_unsigned();
    Registers { code: of(libc::REG_RIP), stack: of(libc::REG_RSP), frame: of(libc::REG_RBP), link: 0 }
}

#[cfg(target_arch = "aarch64")]
unsafe fn registers(context: *const c_void) -> Registers {
    // SAFETY: the caller has it from the kernel.
    let all = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    Registers { code: all.pc, stack: all.sp, frame: all.regs[29], link: all.regs[30] }
}

/// Elsewhere profilers do not start.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn registers(_: *const c_void) -> Registers {
    Registers::default()
}
