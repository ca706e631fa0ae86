//! The command line of QEMU, for people: an option a line, as a shell would take it.

use std::fmt::Write;

use kubevirt_domain::{Domain, qemu};

/// The command line of a domain, and what is done beside it.
pub fn of(domain: &Domain) -> String {
    let mut text = String::new();
    for (name, value) in &domain.environment {
        let _ = write!(text, "{name}={} ", quoted(value));
    }
    text.push_str(domain.machine.architecture.qemu_program());
    for argument in qemu::arguments(domain) {
        let before = if argument.starts_with('-') { " \\\n  " } else { " " };
        let _ = write!(text, "{before}{}", quoted(&argument));
    }
    text.push('\n');
    for command in qemu::start_commands(domain) {
        let _ = writeln!(text, "# then over the monitor: {} {}", command.execute, command.arguments);
    }
    for file in &domain.files {
        let _ = writeln!(text, "# with {} holding {}", file.path, file.content);
    }
    text
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=,.:/@%+".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_a_shell_needs_it() {
        for (word, expected) in [
            ("q35,usb=off", "q35,usb=off"),
            ("", "''"),
            (r#"{"a":1}"#, r#"'{"a":1}'"#),
            ("it's", r"'it'\''s'"),
            ("a b", "'a b'"),
            ("$HOME", "'$HOME'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
