//! Tests on a real Kubernetes: `cargo test -p cluster-tests --test cluster`.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod clients;
mod components;
mod crds;
mod failures;
mod images;
mod install;
mod lifecycle;
mod machines;
mod metrics;
mod nodes;
mod pods;
mod profiler;
mod simulated;
mod system_images;
