//! Makes Rust of the kubelet's protocols, with a compiler that is a crate.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = ["proto/device_plugin.proto", "proto/pod_resources.proto"];
    for file in files {
        println!("cargo::rerun-if-changed={file}");
    }
    tonic_prost_build::configure().btree_map(".").compile_fds(protox::compile(files, ["proto"])?)?;
    Ok(())
}
