//! A real Kubernetes on one machine, for tests.

pub mod binaries;
pub mod layout;
pub mod lock;
