//! Volumes of all sources, made ready in a folder that looks like a pod.

mod claims;
mod cloud_init;
mod container;
mod isos;
mod others;
mod pod;
