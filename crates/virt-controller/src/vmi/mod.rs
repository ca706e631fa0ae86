//! Instances: what they need, and what becomes of them.

pub mod pod;
