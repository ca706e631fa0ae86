//! Clients of machines: KubeVirt's own virtctl and ours, and clients that should get nowhere.

mod ask;
mod backup;
mod client;
mod console;
mod credentials;
mod datagrams;
mod guest;
mod installation;
mod instance;
mod lifecycle;
mod machine;
mod manifests;
mod memory_dump;
mod moves;
mod plugin;
mod refusals;
mod roles;
mod screen;
mod spec;
mod streams;
mod terminal;
mod unserved;
mod usb;
mod volumes;
mod why;
