//! The cases that can be told apart, by what they are about.

pub mod machine;
pub mod node;
pub mod pod;
pub mod running;
pub mod storage;
