//! Holds a container open, so that the disk in its image can be used from outside.
//!
//! It is copied into images of others, which may have no library, no shell and no other file than the disk. So it is
//! one small static program: `cargo rustc --release -p container-disk -- -C target-feature=+crt-static -C
//! relocation-model=static`. While it waits it sleeps in one system call.
#![cfg_attr(not(test), no_main)]

mod arguments;
mod signals;
mod socket;

use arguments::Task;

/// What the C library starts. Rust's own start would add a seventh to the size, for threads that are not here.
#[cfg_attr(not(test), expect(unsafe_code, reason = "the C library finds it by its name"), unsafe(no_mangle))]
pub extern "C" fn main() -> i32 {
    match run() {
        Ok(()) => 0,
        Err(problem) => {
            eprintln!("container-disk: {problem}");
            1
        }
    }
}

fn run() -> Result<(), String> {
    match arguments::parse(std::env::args_os().skip(1))? {
        Task::Nothing => Ok(()),
        Task::Help => {
            print!("{}", arguments::USAGE);
            Ok(())
        }
        Task::Listen(path) => socket::listen_until_stopped(&path),
    }
}
