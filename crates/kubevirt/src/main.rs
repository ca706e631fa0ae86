//! The one binary: its name decides which component it is.
fn main() {}
