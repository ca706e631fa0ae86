//! What installs the system: every object of the components, as pure functions of a configuration.

pub mod certificates;
pub mod config;
pub mod objects;

pub use certificates::{Certificates, Lifetimes};
pub use config::{Images, InstallConfig};
