//! Command lines and what they print, word for word.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use crate::commands::Command;
use crate::program::Program;

/// What stands before a command line in the file of examples.
const PROMPT: &str = "$ virtctl ";

fn file() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "src/commands/create/golden.txt"].iter().collect()
}

/// Every flag, and every way to get it wrong. `UPDATE_GOLDEN=1` writes the file anew.
#[test]
fn command_lines_print_what_they_did_before() {
    let golden = std::fs::read_to_string(file()).unwrap();
    let lines = golden.lines().filter_map(|line| line.strip_prefix(PROMPT));
    let mut printed = String::new();
    for line in lines {
        write!(printed, "{PROMPT}{line}\n{}\n", run(line)).unwrap();
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file(), &printed).unwrap();
    } else {
        assert_eq!(printed, golden);
    }
}

/// What a command line prints: warnings, then the manifest; or the error.
pub(super) fn run(line: &str) -> String {
    let words = std::iter::once("virtctl").chain(words(line)).map(OsString::from);
    let cli = match crate::parse(&Program::called("virtctl".as_ref()), &words.collect::<Vec<_>>()) {
        Ok(cli) => cli,
        Err(error) => return error.to_string().lines().next().unwrap_or_default().to_owned() + "\n",
    };
    let Command::Create(arguments) = cli.command else { panic!("{line} creates nothing") };
    let mut count = 0;
    let suffix = &mut || {
        count += 1;
        format!("rand{count}")
    };
    match arguments.printed(cli.cluster.namespace.as_deref(), suffix) {
        Ok(printed) => {
            let warnings = printed.warnings.iter().fold(String::new(), |text, line| text + line + "\n");
            warnings + &printed.manifest
        }
        Err(error) => format!("error: {error}\n"),
    }
}

/// The words of a command line; single quotes hold words together.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'').unwrap(),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word);
        rest = after.trim_start();
    }
    words
}
