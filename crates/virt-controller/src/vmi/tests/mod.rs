//! Tests of the whole decision: tables of cases, and a model of a cluster that must settle.

mod build;
mod model;
mod networks;
mod plugged;
mod settling;
mod storage;
mod tables;
