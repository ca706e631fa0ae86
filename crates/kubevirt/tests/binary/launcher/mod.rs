//! virt-launcher as its pod runs it, with a real QEMU and a real guest.

mod boot;
mod faults;
mod handler;
mod pod;
mod power;
