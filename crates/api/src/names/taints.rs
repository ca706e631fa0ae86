//! Taints on nodes that KubeVirt acts upon.

/// By default moves every machine off the node that bears it.
pub const DRAIN: &str = "kubevirt.io/drain";
/// Keeps a node for the components of the installation, which tolerate it.
pub const CONTROL_PLANE: &str = "node-role.kubevirt.io/control-plane";
