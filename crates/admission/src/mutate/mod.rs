//! Defaults: what an object leaves open is filled in before it is stored.
//!
//! One function per kind, `fn apply(cx, object, old) -> Problems`; the problems are what stands against filling in.

pub mod clone;
pub mod migration;
#[cfg(test)]
mod reference;
pub mod vm;
pub mod vmi;
