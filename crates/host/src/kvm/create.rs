//! The probe where no test guest is written yet: a machine and a CPU can be made.

use std::path::Path;

/// Makes a machine with one CPU.
#[cfg(any(target_arch = "aarch64", test))]
pub fn attempt(device: &Path) -> Result<(), String> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    let problem = |what: &'static str| move |error| format!("{what}: {error}");
    let path = CString::new(device.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    let kvm = kvm_ioctls::Kvm::new_with_path(path).map_err(problem("it cannot be opened"))?;
    let version = kvm.get_api_version();
    if version != 12 {
        return Err(format!("it has version {version} of the interface, not 12"));
    }
    let machine = kvm.create_vm().map_err(problem("a machine cannot be created"))?;
    machine.create_vcpu(0).map_err(problem("a CPU cannot be created"))?;
    Ok(())
}

/// Takes a device that can be opened for one that works: QEMU says the rest.
#[cfg(not(any(target_arch = "aarch64", test)))]
pub fn attempt(_device: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_a_device_that_is_kvm() {
        assert!(attempt(Path::new("/dev/null")).unwrap_err().contains("version"));
        println!("{:?}", attempt(Path::new("/dev/kvm")));
    }
}
