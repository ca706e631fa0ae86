//! Finding the callers of interrupted code in a copy of its stack, by the tables that compilers leave for that.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection,
};

use super::elf::Tables;
use super::programs::Programs;

/// Nobody looks at callers further out.
const DEEPEST: usize = 128;
/// The size of an address.
const WORD: usize = 8;

/// The registers that lead to callers, as they were when a thread was interrupted, or as a caller finds them again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Registers {
    /// What is run.
    pub(super) code: u64,
    /// Where the stack ends.
    pub(super) stack: u64,
    /// What many compilers use to find the variables of a function.
    pub(super) frame: u64,
    /// Where to return to, where that is not on the stack.
    pub(super) link: u64,
}

/// The numbers of the registers in the tables.
#[cfg(not(target_arch = "aarch64"))]
mod number {
    use gimli::{Register, X86_64};
    pub(super) const STACK: Register = X86_64::RSP;
    pub(super) const FRAME: Register = X86_64::RBP;
    pub(super) const LINK: Register = X86_64::RA;
}
#[cfg(target_arch = "aarch64")]
mod number {
    use gimli::{AArch64, Register};
    pub(super) const STACK: Register = AArch64::SP;
    pub(super) const FRAME: Register = AArch64::X29;
    pub(super) const LINK: Register = AArch64::X30;
}

/// A thread as it was when it was interrupted.
pub(super) struct Snapshot<'a> {
    registers: Registers,
    /// What was on the stack, from where it ends.
    stack: &'a [u8],
}

impl<'a> Snapshot<'a> {
    /// What a handler has sent; none if it is something else.
    pub(super) fn of(message: &'a [u8]) -> Option<Self> {
        let mut words = message.as_chunks::<WORD>().0.iter().map(|word| u64::from_ne_bytes(*word));
        let registers = Registers {
            code: words.next()?,
            stack: words.next()?,
            frame: words.next()?,
            link: words.next()?,
        };
        Some(Self { registers, stack: &message[size_of::<Registers>()..] })
    }

    /// A word of the stack.
    fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.registers.stack)?).ok()?;
        let bytes = self.stack.get(at..at.checked_add(WORD)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }
}

/// How a caller's registers are found.
struct Rules {
    /// Where its stack ends: so far from the value of a register.
    base: Register,
    offset: i64,
    frame: Option<RegisterRule<usize>>,
    link: Option<RegisterRule<usize>>,
}

/// Finds callers, one snapshot after the other.
#[derive(Default)]
pub(super) struct Unwinder(UnwindContext<usize>);

impl Unwinder {
    /// What was run and who called it, as far as can be told: addresses of code, the innermost first. Those of
    /// callers are within the call.
    pub(super) fn stack(&mut self, snapshot: &Snapshot<'_>, programs: &Programs) -> Vec<u64> {
        let mut registers = snapshot.registers;
        let mut found = vec![registers.code];
        while found.len() < DEEPEST {
            let (innermost, at) = (found.len() == 1, found.last().copied().unwrap_or_default());
            let Some(caller) = self.caller(at, innermost, &registers, snapshot, programs) else { break };
            // A stack only grows; whatever else comes out of the tables is not true.
            if caller.code == 0
                || caller.stack < registers.stack
                || caller.stack == registers.stack && !innermost
            {
                break;
            }
            found.push(caller.code - 1);
            registers = caller;
        }
        found
    }

    fn caller(
        &mut self,
        at: u64,
        innermost: bool,
        registers: &Registers,
        snapshot: &Snapshot<'_>,
        programs: &Programs,
    ) -> Option<Registers> {
        let program = programs.of(at)?;
        let rules = self.rules(at.wrapping_sub(program.moved), &program.tables)?;
        let base = value(rules.base, registers)?.checked_add_signed(rules.offset)?;
        let saved = |rule: Option<RegisterRule<usize>>, kept: Option<u64>| match rule {
            Some(RegisterRule::Offset(offset)) => snapshot.word(base.checked_add_signed(offset)?),
            Some(RegisterRule::SameValue) | None => kept,
            Some(_) => None,
        };
        // Where nothing is said, the innermost function has not touched where it returns to; others must have.
        let link = saved(rules.link, innermost.then_some(registers.link))?;
        let frame = saved(rules.frame, Some(registers.frame)).unwrap_or_default();
        Some(Registers { code: link, stack: base, frame, link })
    }

    /// How callers of some code are found.
    fn rules(&mut self, address: u64, tables: &Tables) -> Option<Rules> {
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(tables.index.address)
            .set_eh_frame(tables.frames.address);
        let index = EhFrameHdr::from(EndianSlice::new(&tables.index.bytes, LittleEndian));
        let frames = EhFrame::from(EndianSlice::new(&tables.frames.bytes, LittleEndian));
        let index = index.parse(&bases, WORD as u8).ok()?;
        let row = index.table()?.unwind_info_for_address(
            &frames,
            &bases,
            &mut self.0,
            address,
            EhFrame::cie_from_offset,
        );
        let row = row.ok()?;
        let CfaRule::RegisterAndOffset { register: base, offset } = *row.cfa() else { return None };
        Some(Rules { base, offset, frame: row.register(number::FRAME), link: row.register(number::LINK) })
    }
}

fn value(register: Register, registers: &Registers) -> Option<u64> {
    match register {
        number::STACK => Some(registers.stack),
        number::FRAME => Some(registers.frame),
        _ => None,
    }
}
