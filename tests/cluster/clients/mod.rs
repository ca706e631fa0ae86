//! Clients of machines: KubeVirt's own virtctl and ours, and clients that should get nowhere.

mod client;
mod console;
mod guest;
mod lifecycle;
mod refusals;
mod screen;
mod streams;
mod terminal;
