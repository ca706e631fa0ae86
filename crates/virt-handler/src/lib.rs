//! Looks after the instances of a node.
