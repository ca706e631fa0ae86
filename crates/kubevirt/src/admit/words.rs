//! Verdicts in words.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use kubevirt_admission::review::{Answer, Incoming};
use serde_json::Value;

/// What there is to say, and how it came out.
#[derive(Default)]
pub struct Report {
    lines: Vec<String>,
    accepted: usize,
    refused: usize,
}

impl Report {
    /// A manifest was checked.
    pub fn verdict(&mut self, source: &str, incoming: &Incoming, answer: &Answer) {
        let name = display_name(&incoming.object);
        let verdict = if answer.allowed() { "accepted" } else { "refused" };
        self.lines.push(format!("{source}: {} {name}: {verdict}", incoming.resource.kind));
        self.lines.extend(answer.refusal.iter().map(|refusal| format!("  {}", refusal.message)));
        self.lines.extend(answer.problems.iter().map(|problem| format!("  {problem}")));
        self.lines.extend(answer.warnings.iter().map(|warning| format!("  warning: {warning}")));
        if answer.allowed() {
            self.accepted += 1;
        } else {
            self.refused += 1;
        }
    }

    /// A manifest is none of ours.
    pub fn skipped(&mut self, source: &str, object: &Value) {
        let kind = object["kind"].as_str().unwrap_or_default();
        self.lines
            .push(format!("{source}: {kind} {}: skipped, not a kind of KubeVirt", display_name(object)));
    }

    /// Prints everything; the exit code says whether something was refused.
    pub fn print(mut self) -> Result<ExitCode> {
        self.lines.push(format!("{} accepted, {} refused", self.accepted, self.refused));
        let mut text = self.lines.join("\n");
        text.push('\n');
        std::io::stdout().write_all(text.as_bytes()).context("cannot write the verdict")?;
        Ok(if self.refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn display_name(object: &Value) -> String {
    let metadata = &object["metadata"];
    match (metadata["name"].as_str(), metadata["generateName"].as_str()) {
        (Some(name), _) => name.to_owned(),
        (None, Some(prefix)) => format!("{prefix}*"),
        (None, None) => "(no name)".to_owned(),
    }
}
