//! virt-launcher as its pod runs it, with a real QEMU and a real guest.

mod boot;
mod claims;
mod faults;
mod guest;
mod handler;
mod network;
mod pod;
mod power;
mod volumes;
