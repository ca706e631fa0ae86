//! Makes Rust of the protocol, with a compiler that is a crate, so that no `protoc` must be installed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = [
        "proto/cmd.proto",
        "proto/cmd_info.proto",
        "proto/migration.proto",
        "proto/notify.proto",
        "proto/notify_info.proto",
    ];
    let descriptors = protox::compile(files, ["proto"])?;
    for file in files {
        println!("cargo::rerun-if-changed={file}");
    }
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
