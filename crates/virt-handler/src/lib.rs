//! Looks after the instances of a node.

pub mod devices;
pub mod heartbeat;
pub mod labels;
pub mod metrics;

/// A time that is on average somewhat longer, so that the nodes of a cluster do not all speak at once: up to 2.2 times.
fn jitter(time: std::time::Duration) -> std::time::Duration {
    time.mul_f64(1.0 + fastrand::f64() * 1.2)
}
