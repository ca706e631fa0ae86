//! virt-launcher as its pod runs it, with a real QEMU and a real guest.

mod adoption;
mod boot;
mod claims;
mod companions;
mod faults;
mod guest;
mod handler;
mod metrics;
mod migration;
mod network;
mod pod;
mod power;
mod proxy;
mod users;
mod volumes;
