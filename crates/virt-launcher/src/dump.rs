//! Writing the guest's memory out.

use crate::error::CommandError;
use crate::launcher::Launcher;

impl Launcher {
    /// Dumps.
    pub async fn dump_memory(&self, _: &str) -> Result<(), CommandError> {
        missing("memory dump")
    }
}

fn missing<T>(what: &str) -> Result<T, CommandError> {
    Err(CommandError::Unsupported(format!("{what} is not part of this version yet")))
}
