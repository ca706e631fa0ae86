//! What the launcher's image takes from Debian.

use anyhow::{Result, bail};

/// What to take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    /// Debian's name of the architecture …
    pub(super) architecture: &'static str,
    /// … the folders of its libraries …
    pub(super) libraries: &'static [&'static str],
    /// … and what loads them.
    pub(super) loader: &'static str,
    /// The release.
    pub(super) suite: &'static str,
    /// The packages, without those they depend on.
    pub(super) packages: &'static [&'static str],
    /// Programs and modules that are kept, with all libraries they need.
    pub(super) programs: &'static [&'static str],
    /// Other files and folders that are kept.
    pub(super) data: &'static [&'static str],
}

const X86: Recipe = Recipe {
    architecture: "amd64",
    libraries: &["usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/swtpm"],
    loader: "usr/lib64/ld-linux-x86-64.so.2",
    suite: "trixie",
    packages: &[
        "qemu-system-x86",
        "qemu-utils",
        "ovmf",
        "swtpm",
        "swtpm-tools",
        "virtiofsd",
        "passt",
        "coreutils",
    ],
    programs: &[
        "usr/bin/qemu-system-x86_64",
        "usr/bin/qemu-img",
        "usr/bin/swtpm",
        "usr/bin/swtpm_cert",
        "usr/bin/swtpm_setup",
        "usr/bin/swtpm_localca",
        "usr/bin/certtool",
        "usr/bin/passt",
        "usr/bin/passt.avx2",
        // Puts `container-disk` where containers of foreign images find it.
        "usr/bin/cp",
        "usr/libexec/virtiofsd",
        "usr/lib/x86_64-linux-gnu/qemu/hw-display-virtio-gpu.so",
        "usr/lib/x86_64-linux-gnu/qemu/hw-display-virtio-gpu-pci.so",
        "usr/lib/x86_64-linux-gnu/qemu/hw-display-virtio-vga.so",
        "usr/lib/x86_64-linux-gnu/qemu/hw-uefi-vars.so",
        "usr/lib/x86_64-linux-gnu/qemu/hw-usb-host.so",
        "usr/lib/x86_64-linux-gnu/qemu/hw-usb-redirect.so",
    ],
    data: &[
        "etc/swtpm-localca.conf",
        "etc/swtpm-localca.options",
        "etc/swtpm_setup.conf",
        "usr/share/OVMF/OVMF_CODE_4M.fd",
        "usr/share/OVMF/OVMF_CODE_4M.secboot.fd",
        "usr/share/OVMF/OVMF_VARS_4M.fd",
        "usr/share/OVMF/OVMF_VARS_4M.ms.fd",
        "usr/share/qemu/efi-e1000.rom",
        "usr/share/qemu/efi-e1000e.rom",
        "usr/share/qemu/efi-ne2k_pci.rom",
        "usr/share/qemu/efi-pcnet.rom",
        "usr/share/qemu/efi-rtl8139.rom",
        "usr/share/qemu/efi-virtio.rom",
        "usr/share/qemu/efi-vmxnet3.rom",
        "usr/share/qemu/keymaps",
        "usr/share/qemu/kvmvapic.bin",
        "usr/share/qemu/linuxboot.bin",
        "usr/share/qemu/linuxboot_dma.bin",
        "usr/share/qemu/multiboot.bin",
        "usr/share/qemu/multiboot_dma.bin",
        "usr/share/qemu/pvh.bin",
        "usr/share/seabios",
        "usr/share/swtpm",
    ],
};

/// The recipe for the architecture of this machine.
pub(super) fn of_this_machine() -> Result<Recipe> {
    match std::env::consts::ARCH {
        "x86_64" => Ok(X86),
        other => bail!("there is no recipe for the launcher's image on {other}"),
    }
}
