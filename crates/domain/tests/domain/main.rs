//! From VMIs to QEMU arguments: stored examples, any input at all, and a real QEMU.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod any_input;
mod change;
mod draft;
mod fields;
mod golden;
mod live_change;
mod migration;
mod needs;
mod pci;
mod real_qemu;
mod support;
