//! Looks after the instances of a node.

pub mod arguments;
mod container_disks;
pub mod devices;
pub mod domains;
pub mod downward_metrics;
pub mod heartbeat;
mod hotplug;
mod isolation;
pub mod labels;
pub mod launchers;
pub mod metrics;
mod network;
mod permissions;
pub mod prepare;
mod recall;
mod run;
pub mod server;
#[cfg(test)]
mod testing;
pub mod vmi;
mod volumes;

pub use run::run;

/// A time that is on average somewhat longer, so that the nodes of a cluster do not all speak at once: up to 2.2 times.
fn jitter(time: std::time::Duration) -> std::time::Duration {
    time.mul_f64(1.0 + fastrand::f64() * 1.2)
}
