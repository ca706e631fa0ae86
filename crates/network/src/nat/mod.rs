//! The NAT rules of a masquerading interface: which there are, how nf_tables wants them, and how they get there.

mod encode;
mod rules;
mod table;

pub use rules::{Chain, Family, Match, Rule, Setup, Verdict, fingerprint, rules};
pub use table::{clear, marks, replace};
