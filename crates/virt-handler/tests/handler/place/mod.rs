//! What is done to a launcher's pod from outside, on pods that are made of namespaces and the real `container-disk`.

mod attacks;
mod container_disks;
mod ground;
mod hotplug;
mod network;
mod volumes;
