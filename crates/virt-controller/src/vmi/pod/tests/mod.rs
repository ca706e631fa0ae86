//! Tests of whole pods.

mod attachment;
mod cases;
mod costs;
mod golden;
mod lines;
mod reference;
mod shares;
