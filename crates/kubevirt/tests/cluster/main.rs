//! virt-api and a handler, one behind the other, on a real API server.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "what tests share can do more")]

mod api;
#[path = "../binary/launcher/users/crowd.rs"]
mod crowd;
#[path = "../binary/launcher/users/door.rs"]
mod door;
mod many;
