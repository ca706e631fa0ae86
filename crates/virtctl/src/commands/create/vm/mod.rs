//! `virtctl create vm`: a VirtualMachine from flags.

mod access;
mod arguments;
mod build;
mod cloud_init;
mod import;
mod infer;
#[cfg(test)]
mod tests;
mod volumes;

pub use arguments::Arguments;
pub use build::{Inputs, Made, virtual_machine};
