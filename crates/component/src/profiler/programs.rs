//! The code of this process: which files it is from, and where they are in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use kubevirt_host::code::{Mapping, mapped};

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

/// All of them; the first is the program itself.
#[derive(Debug)]
pub(super) struct Programs(pub(super) Vec<Program>);

impl Programs {
    /// Those of this process. A file that is gone or that is no program is left out.
    pub(super) fn read() -> io::Result<Self> {
        let own = std::fs::read_link("/proc/self/exe")?;
        let mut mappings = mapped()?;
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
        self.position(address).map(|index| &self.0[index])
    }

    /// Which of them that is.
    pub(super) fn position(&self, address: u64) -> Option<usize> {
        self.0.iter().position(|program| (program.mapping.start..program.mapping.end).contains(&address))
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

#[cfg(test)]
mod tests {
    use super::*;

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
