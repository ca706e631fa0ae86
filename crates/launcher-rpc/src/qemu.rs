//! What a QEMU tells of itself, which is the same for every launcher that has it: it is asked once on each node.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::path::Path;

use kubevirt_domain::QemuFacts;
use kubevirt_domain::facts::HostCpu;
use serde::{Deserialize, Serialize};

/// So much of a program is looked at: what is stamped on it when it is built comes early.
const BEGINNING: u64 = 4096;

/// The answers of a QEMU, and which one gave them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QemuAnswers {
    /// Which one was asked.
    pub program: ProgramFile,
    /// Whether it used KVM.
    pub kvm: bool,
    /// What it has.
    pub qemu: QemuFacts,
    /// The host's CPU, as far as guests get one that is named after it.
    pub cpu: HostCpu,
}

/// A program, as far as it has to be told from others. Images may say that all their files are of the same day, so the
/// time does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFile {
    size: u64,
    beginning: u64,
}

impl ProgramFile {
    /// The program in a file.
    pub fn of(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut beginning = Vec::new();
        file.take(BEGINNING).read_to_end(&mut beginning)?;
        // Another release of Rust may hash another way: then the same program is taken for another one and asked again.
        let mut hasher = DefaultHasher::new();
        beginning.hash(&mut hasher);
        Ok(Self { size, beginning: hasher.finish() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_differ_by_what_they_are_and_not_by_where() {
        let folder = std::env::temp_dir().join(format!("kubevirt-rs-programs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let program = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            ProgramFile::of(&path).unwrap()
        };
        assert_eq!(program("one", "built"), program("same", "built"));
        assert_ne!(program("one", "built"), program("other", "Built"));
        let (long, longer) = ("a".repeat(5000), "a".repeat(5001));
        assert_ne!(program("one", &long), program("other", &longer));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
