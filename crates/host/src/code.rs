//! The code of a process in memory, and giving back pages of it that were needed once, to start, and hardly again.
#![expect(unsafe_code, reason = "advice on mapped memory is a raw system call; see `let_go`")]

use std::io;
use std::path::Path;

use rustix::mm::{Advice, madvise};

/// A part of memory that is code from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// The file.
    pub file: String,
}

/// The code of this process that is from files.
pub fn mapped() -> io::Result<Vec<Mapping>> {
    Ok(mappings(&std::fs::read_to_string("/proc/self/maps")?))
}

/// Lets go of the program's own code pages. Those that are needed again come back from the page cache.
///
/// A program that does much at its start and then waits keeps megabytes of code mapped for nothing; beside many
/// virtual machines that counts.
pub fn let_go() -> io::Result<()> {
    advise_own(Advice::LinuxDontNeed)
}

/// Gives advice on the program's own code that leaves it as it is.
fn advise_own(advice: Advice) -> io::Result<()> {
    let program = std::fs::read_link("/proc/self/exe")?;
    for mapping in mapped()?.iter().filter(|mapping| Path::new(&mapping.file) == program) {
        let (start, length) = (mapping.start as *mut _, (mapping.end - mapping.start) as usize);
        // SAFETY: the range is a private mapping of the program's file that nobody can write, so its pages are what
        // the file holds, and the kernel reads them again at the next access. Nothing in Rust's memory is touched.
        unsafe { madvise(start, length, advice) }?;
    }
    Ok(())
}

/// What can be run and not be written, from a process's list of mappings. Read-only data is no part of it: what the
/// loader wrote to and then sealed looks the same, and would be lost if it was let go.
fn mappings(maps: &str) -> Vec<Mapping> {
    let mapping = |line: &str| {
        let mut words = line.split_whitespace();
        let (range, rights, offset) = (words.next()?, words.next()?, words.next()?);
        let (start, end) = range.split_once('-')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        let (start, end, offset) = (number(start)?, number(end)?, number(offset)?);
        // A name may have spaces in it; nothing stands behind it.
        let file = line[line.find('/')?..].to_owned();
        (rights == "r-xp" && start <= end).then_some(Mapping { start, end, offset, file })
    };
    maps.lines().filter_map(mapping).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_from_files_and_not_written() {
        let maps = "00400000-00500000 r--p 00000000 fe:00 1    /usr/bin/kubevirt\n\
            00500000-00900000 r-xp 00100000 fe:00 1    /usr/bin/kubevirt\n\
            00900000-00a00000 r--p 00500000 fe:00 1    /usr/bin/kubevirt\n\
            00a00000-00b00000 rw-p 00600000 fe:00 1    /usr/bin/kubevirt\n\
            00b00000-00c00000 rwxp 00700000 fe:00 1    /usr/bin/kubevirt\n\
            7f0000000000-7f0000001000 r-xp 00002000 fe:00 2    /usr/lib/a library.so\n\
            7f0000005000-7f0000006000 r-xp 00000000 00:00 0\n\
            7fff00000000-7fff00001000 r-xp 00000000 00:00 0    [vdso]\n\
            what is this\n";
        let of = |start, end, offset, file: &str| Mapping { start, end, offset, file: file.to_owned() };
        assert_eq!(
            mappings(maps),
            [
                of(0x50_0000, 0x90_0000, 0x10_0000, "/usr/bin/kubevirt"),
                of(0x7f00_0000_0000, 0x7f00_0000_1000, 0x2000, "/usr/lib/a library.so"),
            ]
        );
    }

    /// How many kilobytes of this program's code are in memory.
    fn kept() -> u64 {
        let program = std::fs::read_link("/proc/self/exe").unwrap();
        let all = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_code = false;
        let mut sum = 0;
        for line in all.lines() {
            if let Some(size) = line.strip_prefix("Rss:").filter(|_| is_code) {
                sum += size.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
            } else if line.contains('-') && !line.contains(" kB") {
                is_code = line.contains(" r-xp ") && line.ends_with(program.to_str().unwrap());
            }
        }
        sum
    }

    #[test]
    fn a_program_goes_on_without_its_code() {
        advise_own(Advice::LinuxPopulateRead).unwrap();
        let all = kept();
        let_go().unwrap();
        let needed = kept();
        assert!(needed < all, "{needed} of {all} kB");
        assert_eq!((0..1000).map(|number| number * number).sum::<u64>(), 332_833_500);
    }
}
