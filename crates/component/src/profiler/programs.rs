//! The code of this process: which files it is from, and where they are in memory.

use std::fs::{File, read_to_string};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::elf::{Image, Tables};

/// A file whose code is in memory.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) mapping: Mapping,
    /// By how much it is elsewhere than its file says.
    pub(super) moved: u64,
    pub(super) tables: Tables,
    pub(super) build_id: String,
}

/// A part of memory that is from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Where in the file it begins.
    pub(super) offset: u64,
    pub(super) file: String,
}

/// All of them; the first is the program itself.
#[derive(Debug)]
pub(super) struct Programs(pub(super) Vec<Program>);

impl Programs {
    /// Those of this process. A file that is gone or that is no program is left out.
    pub(super) fn read() -> io::Result<Self> {
        let own = std::fs::read_link("/proc/self/exe")?;
        let mut mappings = mappings(&read_to_string("/proc/self/maps")?);
        mappings.sort_by_key(|mapping| Path::new(&mapping.file) != own);
        let all: Vec<_> = mappings.into_iter().filter_map(|mapping| program(mapping, &own).ok()).collect();
        if all.is_empty() {
            return Err(io::Error::other("the program's own file cannot be read"));
        }
        Ok(Self(all))
    }

    /// The same for who only wants to know where they are: tables are some megabytes.
    pub(super) fn without_tables(&self) -> Self {
        let light = |program: &Program| Program {
            mapping: program.mapping.clone(),
            moved: program.moved,
            tables: Tables::default(),
            build_id: program.build_id.clone(),
        };
        Self(self.0.iter().map(light).collect())
    }

    /// The one that an address of code is in.
    pub(super) fn of(&self, address: u64) -> Option<&Program> {
        self.0.iter().find(|program| (program.mapping.start..program.mapping.end).contains(&address))
    }
}

fn program(mapping: Mapping, own: &Path) -> io::Result<Program> {
    // By this name the file is found even if it was replaced.
    let path = if Path::new(&mapping.file) == own { "/proc/self/exe" } else { &mapping.file };
    let file = File::open(path)?;
    let image = Image::read(|offset, length| {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset).map(|()| bytes)
    })?;
    let moved = image.moved(mapping.offset, mapping.start).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Program { mapping, moved, tables: image.tables, build_id: image.build_id })
}

/// What is executable and from a file, from a process's list of mappings.
fn mappings(text: &str) -> Vec<Mapping> {
    let mapping = |line: &str| {
        let mut words = line.split_whitespace();
        let (range, rights, offset) = (words.next()?, words.next()?, words.next()?);
        // A name may have spaces in it; nothing stands behind it.
        let file = &line[line.find('/')?..];
        let (start, end) = range.split_once('-')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        let executable = rights.as_bytes().get(2) == Some(&b'x');
        executable.then_some(Mapping {
            start: number(start)?,
            end: number(end)?,
            offset: number(offset)?,
            file: file.to_owned(),
        })
    };
    text.lines().filter_map(mapping).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_from_files() {
        let maps = "00400000-00500000 r--p 00000000 fe:00 1    /usr/bin/kubevirt\n\
            00500000-00900000 r-xp 00100000 fe:00 1    /usr/bin/kubevirt\n\
            00a00000-00b00000 rw-p 00600000 fe:00 1    /usr/bin/kubevirt\n\
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

    #[test]
    fn this_process_knows_its_own_code() {
        let programs = Programs::read().unwrap();
        let own = std::fs::read_link("/proc/self/exe").unwrap();
        let here = this_process_knows_its_own_code as fn() as usize as u64;
        assert_eq!(Path::new(&programs.0[0].mapping.file), own);
        assert_eq!(Path::new(&programs.of(here).unwrap().mapping.file), own);
        assert!(programs.of(0).is_none());
    }
}
