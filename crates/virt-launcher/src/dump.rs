//! Writing the guest's memory to a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kubevirt_launcher_rpc::report::{JobReport, Reason, State};
use kubevirt_qemu::machine::{DumpError, DumpFormat};

use crate::board::now;
use crate::error::CommandError;
use crate::launcher::Launcher;
use crate::running::Running;

/// What the names of all dumps have in common.
const DUMP: &str = "memory.dump";

/// What to do about a wish for a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Begin,
    /// This very dump is at work, or is done.
    Known,
    /// Another one is at work.
    Busy,
}

fn wish(latest: Option<&JobReport>, name: &str) -> Wish {
    match latest {
        Some(latest) if latest.name == name => Wish::Known,
        Some(latest) if !latest.completed => Wish::Busy,
        _ => Wish::Begin,
    }
}

impl Launcher {
    /// Begins to write the guest's memory to a file; the report tells what comes of it.
    ///
    /// The guest stands still meanwhile. Older dumps in the folder go, since there may be space for one only.
    pub async fn dump_memory(self: &Arc<Self>, path: &str) -> Result<(), CommandError> {
        let running = self.running()?;
        let path = PathBuf::from(path);
        let name = file_name(&path)?;
        let latest = self.board.report().status.memory_dump;
        match wish(latest.as_ref(), &name) {
            Wish::Known => return Ok(()),
            Wish::Busy => return Err(CommandError::Refused("another memory dump is at work".into())),
            Wish::Begin => {}
        }
        self.board.change_status(|status| {
            let start_timestamp = Some(now());
            status.memory_dump = Some(JobReport { name, start_timestamp, ..JobReport::default() });
        });
        let launcher = self.clone();
        tokio::spawn(async move {
            let outcome = launcher.write_dump(&running, &path).await;
            launcher.tell_dump(outcome);
        });
        Ok(())
    }

    async fn write_dump(&self, running: &Running, path: &Path) -> Result<(), DumpError> {
        remove_dumps(path.parent().unwrap_or(Path::new("/")));
        if self.state().0 == State::Running {
            self.intend(|intent| intent.stop = Some(Reason::Dump));
        }
        let to = format!("file:{}", path.display());
        let written =
            async { running.machine.dump_memory(&to, &DumpFormat::Elf).await?.finish().await }.await;
        if written.is_err() {
            // Half a dump is of no use, and may hold all the space of the next one.
            let _ = std::fs::remove_file(path);
            self.intend(|intent| intent.stop = intent.stop.filter(|reason| *reason != Reason::Dump));
        }
        written
    }

    fn tell_dump(&self, outcome: Result<(), DumpError>) {
        let failure = outcome.err().map(|error| error.to_string());
        match &failure {
            Some(reason) => tracing::error!(reason, "the memory is not dumped"),
            None => tracing::info!("the memory is dumped"),
        }
        self.board.change_status(|status| {
            if let Some(dump) = &mut status.memory_dump {
                dump.completed = true;
                dump.end_timestamp = Some(now());
                dump.failed = failure.is_some();
                dump.failure_reason = failure.unwrap_or_default();
            }
        });
    }
}

fn file_name(path: &Path) -> Result<String, CommandError> {
    let name = path.file_name().filter(|_| path.is_absolute());
    let none = || CommandError::Refused(format!("{} is no path for a memory dump", path.display()));
    Ok(name.ok_or_else(none)?.to_string_lossy().into_owned())
}

fn remove_dumps(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().contains(DUMP)) {
        if let Err(error) = std::fs::remove_file(entry.path()) {
            tracing::warn!(%error, file = ?entry.path(), "an old memory dump stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_begun_once() {
        let job = |name: &str, completed| JobReport { name: name.into(), completed, ..JobReport::default() };
        assert_eq!(wish(None, "a"), Wish::Begin);
        assert_eq!(wish(Some(&job("a", false)), "a"), Wish::Known);
        assert_eq!(wish(Some(&job("a", true)), "a"), Wish::Known);
        assert_eq!(wish(Some(&job("b", false)), "a"), Wish::Busy);
        assert_eq!(wish(Some(&job("b", true)), "a"), Wish::Begin);
    }

    #[test]
    fn a_dump_has_a_name() {
        assert_eq!(file_name(Path::new("/dumps/web-1.memory.dump")).unwrap(), "web-1.memory.dump");
        assert!(file_name(Path::new("/")).is_err() && file_name(Path::new("x")).is_err());
    }

    #[test]
    fn only_dumps_are_removed() {
        let folder = std::env::temp_dir().join(format!("kubevirt-dumps-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        for name in ["old-1.memory.dump", "disk.img"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        remove_dumps(&folder);
        let left: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["disk.img"]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
