//! What a launcher asks of the machine it runs on, and does to its processes. Knows nothing of Kubernetes.

pub mod kvm;
