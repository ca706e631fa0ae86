//! virt-launcher: one virtual machine in its pod.

pub mod volumes;
