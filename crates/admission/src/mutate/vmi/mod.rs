//! Defaults.
