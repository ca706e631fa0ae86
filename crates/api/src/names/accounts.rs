//! Service accounts of the components, by which they may write what users may not.

/// Answers admission reviews and subresources.
pub const API: &str = "kubevirt-apiserver";
/// Makes instances of machines, pods of instances and migrations.
pub const CONTROLLER: &str = "kubevirt-controller";
/// Looks after the instances of a node.
pub const HANDLER: &str = "kubevirt-handler";
/// Talks to other clusters about migrations.
pub const SYNCHRONIZATION_CONTROLLER: &str = "kubevirt-synchronization-controller";

/// All of them.
pub const ALL: [&str; 4] = [API, CONTROLLER, HANDLER, SYNCHRONIZATION_CONTROLLER];
