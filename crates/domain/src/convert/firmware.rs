//! BIOS, UEFI and kernels that are started directly.

use super::{Conversion, text};
use crate::domain::Architecture;
use crate::domain::firmware::{Firmware, KernelBoot};

/// Whether only signed code may boot.
pub(super) fn secure_boot(c: &Conversion<'_>) -> bool {
    let bootloader = c.spec.firmware.as_ref().and_then(|firmware| firmware.bootloader.as_ref());
    let efi = bootloader.and_then(|bootloader| bootloader.efi.as_ref());
    let default = c.architecture == Architecture::Amd64;
    c.is_efi() && efi.is_some_and(|efi| efi.secure_boot.unwrap_or(default))
}

/// What runs first.
pub(super) fn convert(c: &mut Conversion<'_>) -> Firmware {
    let bootloader = c.spec.firmware.as_ref().and_then(|firmware| firmware.bootloader.as_ref());
    let bios = bootloader.and_then(|bootloader| bootloader.bios.as_ref());
    let wants_efi = bootloader.is_some_and(|bootloader| bootloader.efi.is_some());
    let serial = bios.is_some_and(|bios| bios.use_serial == Some(true));
    if !c.is_efi() {
        if wants_efi {
            c.unsupported("spec.domain.firmware.bootloader.efi", "s390x has no UEFI");
        }
        if protection(c).is_some() {
            c.unsupported("spec.domain.firmware.bootloader", "a protected guest needs UEFI");
        }
        return Firmware::Builtin { serial };
    }
    if bios.is_some() {
        c.unsupported("spec.domain.firmware.bootloader.bios", "arm64 has no BIOS");
    }
    let secure_boot = secure_boot(c);
    if secure_boot && c.architecture == Architecture::Arm64 {
        c.unsupported("spec.domain.firmware.bootloader.efi.secureBoot", "it is not supported on arm64");
    }
    let files = &c.host.firmware;
    let rom = match protection(c) {
        Some(Protection::Snp) => Some(files.snp.clone()),
        Some(Protection::Tdx) => Some(if secure_boot { files.tdx_secure.clone() } else { files.tdx.clone() }),
        _ => None,
    };
    let flash = match protection(c) {
        Some(Protection::Sev) => &files.sev,
        _ if secure_boot => &files.secure,
        _ => &files.plain,
    };
    let found = match rom {
        Some(rom) => rom.map(|path| Firmware::Rom { path }),
        None => flash.as_ref().map(|files| Firmware::Flash {
            code: files.code.clone(),
            vars: c.layout.nvram(c.name()),
            template: files.vars.clone(),
            secure_boot,
        }),
    };
    if secure_boot && matches!(protection(c), Some(Protection::Sev | Protection::Snp)) {
        c.unsupported(
            "spec.domain.firmware.bootloader.efi.secureBoot",
            "AMD SEV cannot be used with secure boot",
        );
    }
    found.unwrap_or_else(|| {
        c.unsupported(
            "spec.domain.firmware.bootloader.efi",
            "this host has no UEFI image for such a machine",
        );
        Firmware::Builtin { serial }
    })
}

/// A kernel that is started directly.
pub(super) fn kernel(c: &mut Conversion<'_>) -> Option<KernelBoot> {
    let boot = c.spec.firmware.as_ref().and_then(|firmware| firmware.kernel_boot.as_ref())?;
    let container = boot.container.as_ref();
    let artifact = |path: &Option<String>| text(path).map(|path| c.layout.kernel_artifact(&path));
    let kernel = KernelBoot {
        kernel: container.and_then(|container| artifact(&container.kernel_path)),
        initrd: container.and_then(|container| artifact(&container.initrd_path)),
        args: text(&boot.kernel_args),
    };
    if kernel.kernel.is_none() && kernel != KernelBoot::default() {
        c.unsupported("spec.domain.firmware.kernelBoot", "arguments and initrd need a kernel");
    }
    (kernel != KernelBoot::default()).then_some(kernel)
}

/// Kinds of protected guests, as far as their firmware differs.
enum Protection {
    Sev,
    Snp,
    Tdx,
}

fn protection(c: &Conversion<'_>) -> Option<Protection> {
    let security = c.spec.launch_security.as_ref().filter(|_| c.architecture == Architecture::Amd64)?;
    match security {
        _ if security.sev.is_some() => Some(Protection::Sev),
        _ if security.snp.is_some() => Some(Protection::Snp),
        _ if security.tdx.is_some() => Some(Protection::Tdx),
        _ => None,
    }
}
