//! Giving back the pages of code that a process needed once, to start, and will hardly need again.
#![expect(unsafe_code, reason = "advice on mapped memory is a raw system call; see `let_go`")]

use std::io;
use std::path::Path;

/// Lets go of the program's own code pages. Those that are needed again come back from the page cache.
///
/// A program that does much at its start and then waits keeps megabytes of code mapped for nothing; beside many
/// virtual machines that counts.
pub fn let_go() -> io::Result<()> {
    let program = std::fs::read_link("/proc/self/exe")?;
    for (start, length) in own_code(&std::fs::read_to_string("/proc/self/maps")?, &program) {
        // SAFETY: the range is a private mapping of the program's file that nobody can write, so its pages are what
        // the file holds, and the kernel reads them again at the next access. Nothing in Rust's memory is touched.
        unsafe { rustix::mm::madvise(start as *mut _, length, rustix::mm::Advice::LinuxDontNeed) }?;
    }
    Ok(())
}

/// Ranges of executable mappings of a file, from a process's list of mappings. Read-only data is left alone: what
/// the loader wrote to and then sealed looks the same, and would be lost.
fn own_code(maps: &str, program: &Path) -> Vec<(usize, usize)> {
    let range = |line: &str| {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        let path = words.nth(3)?;
        if rights != "r-xp" || Path::new(path) != program {
            return None;
        }
        let (start, end) = range.split_once('-')?;
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        Some((start, end.checked_sub(start)?))
    };
    maps.lines().filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_the_program_is_let_go() {
        let maps = "00400000-00500000 r--p 00000000 fe:00 1 /usr/bin/kubevirt\n\
            00500000-00900000 r-xp 00100000 fe:00 1 /usr/bin/kubevirt\n\
            00900000-00a00000 r--p 00500000 fe:00 1 /usr/bin/kubevirt\n\
            00a00000-00b00000 rw-p 00600000 fe:00 1 /usr/bin/kubevirt\n\
            7f0000000000-7f0000001000 r-xp 00000000 fe:00 2 /usr/lib/libc.so\n\
            7fff00000000-7fff00001000 r-xp 00000000 00:00 0 [vdso]\n";
        assert_eq!(own_code(maps, Path::new("/usr/bin/kubevirt")), [(0x50_0000, 0x40_0000)]);
    }

    #[test]
    fn a_program_goes_on_without_its_code() {
        let_go().unwrap();
        assert_eq!((0..1000).map(|number| number * number).sum::<u64>(), 332_833_500);
    }
}
