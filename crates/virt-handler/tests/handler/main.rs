//! virt-handler on a real kernel.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;
