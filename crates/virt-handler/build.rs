//! Makes Rust of the kubelet's protocol for device plugins, with a compiler that is a crate.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = "proto/device_plugin.proto";
    println!("cargo::rerun-if-changed={file}");
    tonic_prost_build::configure().btree_map(".").compile_fds(protox::compile([file], ["proto"])?)?;
    Ok(())
}
