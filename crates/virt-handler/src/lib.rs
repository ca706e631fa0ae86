//! Looks after the instances of a node.

pub mod domains;
pub mod launchers;
pub mod prepare;
#[cfg(test)]
mod testing;
pub mod vmi;
