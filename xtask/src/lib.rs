//! Chores of contributors, as a library so that tests can start what they need themselves.

pub mod cluster;
pub mod coverage;
pub mod crds;
pub mod guest;
pub mod image;
pub mod images;
pub mod install;
pub mod sha256;
pub mod up;
