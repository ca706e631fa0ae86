//! Runs programs that judge images.

use std::ffi::OsStr;
use std::process::Command;

/// What a program says; it must succeed.
pub fn run<A: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = A>) -> String {
    let args: Vec<_> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
    let output = Command::new(program)
        .args(&args)
        .output()
        .unwrap_or_else(|error| panic!("{program} is needed for this test: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Splits a line of arguments, of which none has spaces.
pub fn line(program: &str, args: &str) -> String {
    run(program, args.split(' '))
}

/// Reads or writes an image as a guest would.
pub fn qemu_io(image: &str, commands: &[&str]) {
    let mut args = vec!["-f", "qcow2", image];
    for command in commands {
        args.extend(["-c", command]);
    }
    let said = run("qemu-io", args);
    // It succeeds even if a pattern is not what it should be.
    assert!(!said.contains("verification failed") && !said.contains("error"), "{said}");
}
