//! `why`: says in plain words why a machine does not run, and what to do about it.
//!
//! [`gather`] looks at all that may matter, as far as the user may; [`explain`] is a pure function of what was seen,
//! and goes through the [`cases`] one by one.

mod cases;
mod evidence;
mod explain;
mod gather;
mod scheduler;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;

use self::evidence::Evidence;
use self::explain::{Explanation, explain};
use crate::connect::Connect;
use crate::output;
use crate::target::Target;

/// Explain why a virtual machine is not running, and what to do next.
///
/// Looks at the machine, its instance, pod, volumes and node, their events, and the end of the launcher's log: as much
/// of it as you may see. Changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Why does 'myvm' not run?\n  {program} why myvm

  # The same for an instance of another namespace:\n  {program} why vmi/myvmi/mynamespace")]
pub struct Arguments {
    /// Its name, or vm/NAME or vmi/NAME, also with /NAMESPACE
    #[arg(value_name = "NAME")]
    name: String,
}

impl Arguments {
    /// Gathers, explains and prints.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let (name, namespace) = match self.name.contains('/') {
            true => {
                let target = Target::parse(&self.name)?;
                (target.name, target.namespace)
            }
            false => (self.name, None),
        };
        let session = connect.session().await?;
        let namespace = namespace.unwrap_or_else(|| session.namespace.clone());
        let evidence = gather::gather(session, &connect.program.name, &namespace, &name).await?;
        let explanation = explain(&evidence);
        output::print(&render(&evidence, &explanation))?;
        let absent = explanation.case == "absent";
        Ok(if absent { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// As it is printed.
fn render(evidence: &Evidence, told: &Explanation) -> String {
    let mut text = format!("{} {}.\n", evidence.name, told.what);
    let mut list = |title: &str, lines: &[String]| {
        for (index, line) in lines.iter().enumerate() {
            let title = if index == 0 { title } else { "" };
            let line = line.trim().replace('\n', "\n          ");
            // A string takes all that is written to it.
            let _ = writeln!(text, "  {title:<8}{line}");
        }
    };
    list("Seen:", &told.because);
    list("Next:", &told.next);
    list("Unseen:", &evidence.unseen);
    text
}
