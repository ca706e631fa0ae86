//! The name that the program was called by, and how it calls itself.

use std::ffi::OsStr;
use std::path::Path;

/// The names that the program has.
pub const NAMES: [&str; 4] = ["virtctl", "kubectl-virt", "kubectl-virtctl", "oc-virt"];
/// The programs that have it as a plugin.
const HOSTS: [&str; 2] = ["kubectl", "oc"];

/// How the program was called.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Program {
    /// What help and examples call it: as a plugin of kubectl, `kubectl virt`; of oc, `oc virt`.
    pub name: String,
}

impl Program {
    /// From the first argument.
    pub fn called(first: &OsStr) -> Self {
        let name = Path::new(first).file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".exe").unwrap_or(&name);
        let name = match name.split_once('-') {
            Some((host, plugin)) if HOSTS.contains(&host) => format!("{host} {}", plugin.replace('_', "-")),
            _ => "virtctl".to_owned(),
        };
        Self { name }
    }

    /// The words that run this program again, for somebody who cannot know by which of its names.
    pub fn again(&self) -> std::io::Result<Vec<String>> {
        Ok(words(&std::env::current_exe()?))
    }
}

/// The one binary is many programs: unless its file has a name of ours, it must be told which.
fn words(executable: &Path) -> Vec<String> {
    let name = executable.file_stem().unwrap_or_default().to_string_lossy();
    let mut words = vec![executable.to_string_lossy().into_owned()];
    if !NAMES.contains(&&*name) {
        words.push(NAMES[0].to_owned());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_shows_the_name_that_was_called() {
        for (first, expected) in [
            ("/usr/bin/virtctl", "virtctl"),
            ("virtctl", "virtctl"),
            ("/home/me/.krew/bin/kubectl-virt", "kubectl virt"),
            ("kubectl-virtctl", "kubectl virtctl"),
            ("kubectl-virt.exe", "kubectl virt"),
            ("/usr/bin/oc-virt", "oc virt"),
            ("my-virt", "virtctl"),
            ("kubevirt", "virtctl"),
            ("", "virtctl"),
        ] {
            assert_eq!(Program::called(OsStr::new(first)).name, expected, "{first}");
        }
    }

    #[test]
    fn the_program_calls_itself_by_a_name_that_it_has() {
        assert_eq!(words(Path::new("/bin/virtctl")), ["/bin/virtctl"]);
        assert_eq!(words(Path::new("/bin/kubectl-virt")), ["/bin/kubectl-virt"]);
        assert_eq!(words(Path::new("/bin/oc-virt")), ["/bin/oc-virt"]);
        assert_eq!(words(Path::new("/bin/kubevirt")), ["/bin/kubevirt", "virtctl"]);
    }
}
