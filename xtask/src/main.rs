//! Chores of contributors.
fn main() {}
