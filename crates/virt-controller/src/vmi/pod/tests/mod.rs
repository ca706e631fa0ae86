//! Tests of whole pods.

mod attachment;
mod cases;
mod costs;
mod flags;
mod golden;
mod images;
mod lines;
mod reference;
mod shares;
