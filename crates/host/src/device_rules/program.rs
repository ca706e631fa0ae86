//! Version 2: the program that decides, put together from rules.

use super::{Access, Rule};

/// One instruction of the kernel's virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    code: u8,
    /// The lower half is the register that is written, the upper one that which is read.
    registers: u8,
    offset: i16,
    number: i32,
}

/// Loads a word of what the register points at.
const LOAD: u8 = 0x61;
/// Keeps the bits of a number.
const AND: u8 = 0x54;
/// Moves bits down.
const SHIFT: u8 = 0x74;
/// Sets a register to a number.
const SET: u8 = 0xb7;
/// Jumps if a register is not a number.
const JUMP_UNLESS: u8 = 0x55;
/// Jumps if a register has any of a number's bits.
const JUMP_IF_ANY: u8 = 0x45;
const EXIT: u8 = 0x95;

const RESULT: u8 = 0;
const CONTEXT: u8 = 1;
const KIND: u8 = 2;
const ACCESS: u8 = 3;
const MAJOR: u8 = 4;
const MINOR: u8 = 5;

/// How the kernel calls block and character devices, and what is done with them.
const BLOCK: i32 = 1;
const CHARACTER: i32 = 2;
const READ_OR_WRITE: i32 = 2 | 4;

/// The program that allows what any of the rules does, and nothing else. The same rules give the same program.
pub fn assemble(rules: &[Rule]) -> Vec<Instruction> {
    let mut rules = rules.to_vec();
    rules.sort_unstable();
    rules.dedup();
    // The kernel hands over three words: access above kind, major, minor.
    let mut program = vec![
        instruction(LOAD, KIND, CONTEXT, 0, 0),
        instruction(AND, KIND, 0, 0, 0xffff),
        instruction(LOAD, ACCESS, CONTEXT, 0, 0),
        instruction(SHIFT, ACCESS, 0, 0, 16),
        instruction(LOAD, MAJOR, CONTEXT, 4, 0),
        instruction(LOAD, MINOR, CONTEXT, 8, 0),
    ];
    for rule in rules {
        one(&rule, &mut program);
    }
    program.extend([instruction(SET, RESULT, 0, 0, 0), instruction(EXIT, 0, 0, 0, 0)]);
    program
}

/// Ends with "yes" if the rule allows it, or goes on behind it.
fn one(rule: &Rule, program: &mut Vec<Instruction>) {
    let kind = if rule.block { BLOCK } else { CHARACTER };
    let mut checks = vec![(JUMP_UNLESS, KIND, kind)];
    // The kernel's numbers have 12 and 20 bits; a larger one is no device's.
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    checks.extend(rule.major.map(|major| (JUMP_UNLESS, MAJOR, number(major))));
    checks.extend(rule.minor.map(|minor| (JUMP_UNLESS, MINOR, number(minor))));
    if rule.access == Access::Make {
        checks.push((JUMP_IF_ANY, ACCESS, READ_OR_WRITE));
    }
    let count = checks.len();
    for (index, (code, register, number)) in checks.into_iter().enumerate() {
        let behind = (count - index - 1) + 2;
        program.push(instruction(code, register, 0, behind as i16, number));
    }
    program.extend([instruction(SET, RESULT, 0, 0, 1), instruction(EXIT, 0, 0, 0, 0)]);
}

fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> Instruction {
    Instruction { code, registers: to | from << 4, offset, number }
}

#[cfg(test)]
mod tests {
    use rustix::fs::makedev;

    use super::*;
    use crate::device_rules::of_every_container;

    const MAKE: u32 = 1;
    const READ: u32 = 2;
    const WRITE: u32 = 4;

    /// Does what the kernel would, and fails at what its verifier would refuse.
    fn run(program: &[Instruction], block: bool, device: (u32, u32), access: u32) -> bool {
        let kind = if block { BLOCK } else { CHARACTER } as u32;
        let context = [access << 16 | kind, device.0, device.1];
        let mut registers: [Option<u64>; 11] = [None; 11];
        let mut at = 0;
        loop {
            let now = program[at];
            let to = usize::from(now.registers & 15);
            at += 1;
            match now.code {
                LOAD => {
                    assert_eq!((now.registers >> 4, now.offset % 4), (CONTEXT, 0));
                    registers[to] = Some(context[now.offset as usize / 4].into());
                }
                AND => registers[to] = Some(u64::from(registers[to].unwrap() as u32 & now.number as u32)),
                SHIFT => registers[to] = Some(u64::from(registers[to].unwrap() as u32 >> now.number)),
                SET => registers[to] = Some(now.number as u64),
                JUMP_UNLESS if registers[to].unwrap() != now.number as u64 => at += now.offset as usize,
                JUMP_IF_ANY if registers[to].unwrap() & now.number as u64 != 0 => at += now.offset as usize,
                JUMP_UNLESS | JUMP_IF_ANY => {}
                EXIT => return registers[0].unwrap() == 1,
                code => panic!("unknown instruction {code:#x}"),
            }
        }
    }

    #[test]
    fn allows_what_the_rules_say_and_nothing_else() {
        let mut rules = of_every_container();
        rules.extend([Rule::block(makedev(253, 3)), Rule::character(makedev(10, 232))]);
        let program = assemble(&rules);
        for (block, device, access, expected) in [
            (true, (253, 3), READ | WRITE, true),
            (true, (253, 3), READ | WRITE | MAKE, true),
            (true, (253, 4), READ, false),
            (true, (252, 3), READ, false),
            (false, (253, 3), READ, false),
            (false, (10, 232), READ | WRITE, true),
            (true, (10, 232), WRITE, false),
            (false, (1, 3), READ | WRITE, true),
            (false, (1, 1), READ, false),
            (false, (136, 77), READ | WRITE, true),
            (true, (8, 0), MAKE, true),
            (false, (8, 0), MAKE, true),
            (true, (8, 0), MAKE | READ, false),
            (true, (8, 0), WRITE, false),
        ] {
            assert_eq!(run(&program, block, device, access), expected, "{block} {device:?} {access}");
        }
        assert!(!run(&assemble(&[]), true, (8, 0), MAKE));
    }

    #[test]
    fn the_order_of_rules_does_not_count() {
        let (a, b) = (Rule::block(makedev(1, 2)), Rule::character(makedev(3, 4)));
        assert_eq!(assemble(&[a, b, a]), assemble(&[b, a]));
        assert_ne!(assemble(&[a, b]), assemble(&[a]));
    }
}
