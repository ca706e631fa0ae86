//! The kernel and those of its modules that a guest needs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Flavour;

/// What every guest can do. Some of it is part of one kernel and a module of another.
const COMMON: &[&str] = &[
    "virtio_pci virtio_blk virtio_scsi virtio_net virtio_console virtio_balloon virtio_mem virtio_rng",
    "virtio_input virtiofs vmw_vsock_virtio_transport",
    "sd_mod sr_mod sg ext4 vfat isofs overlay efivarfs nls_cp437 nls_iso8859_1 nls_utf8 nls_ascii",
    "crc32c_generic crc32c_intel",
    "button evdev pvpanic_mmio pvpanic_pci qemu_fw_cfg 8021q",
];

/// What only the usual kernel has drivers for.
const FULL: &[&str] = &[
    "ahci ata_piix ata_generic floppy",
    "xhci_pci ehci_pci uhci_hcd usb_storage uas usbhid hid_generic psmouse",
    "e1000 e1000e 8139cp 8139too pcnet32 ne2k_pci vmxnet3",
    "bochs virtio_gpu cirrus qxl",
    "snd_hda_intel snd_hda_codec_generic snd_intel8x0",
    "i6300esb iTCO_wdt lpc_ich i2c_i801 ib700wdt tpm_tis tpm_crb",
];

/// An unpacked kernel.
pub(super) struct Kernel {
    /// The kernel itself.
    pub(super) image: PathBuf,
    /// Its version.
    pub(super) version: String,
    folder: PathBuf,
    /// Modules by name, relative to the folder.
    files: BTreeMap<String, PathBuf>,
    /// What is part of the kernel.
    included: BTreeSet<String>,
}

/// One module, and what it says of itself.
#[derive(Debug)]
pub(super) struct Module {
    /// Where it is, relative to the folder of the modules.
    pub(super) path: PathBuf,
    /// The file.
    pub(super) content: Vec<u8>,
    /// The names of the modules it needs.
    depends: Vec<String>,
    /// The devices it is for.
    aliases: Vec<String>,
}

impl Kernel {
    /// The one below `root`.
    pub(super) fn find(root: &Path) -> Result<Self> {
        let boot = fs::read_dir(root.join("boot")).context("the kernel's package has no /boot")?;
        let image = boot
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")))
            .context("the kernel's package has no kernel")?;
        let name = image.file_name().unwrap_or_default().to_string_lossy();
        let version = name.trim_start_matches("vmlinuz-").to_owned();
        let places = [root.join("lib/modules").join(&version), root.join("usr/lib/modules").join(&version)];
        let folder = places.into_iter().find(|place| place.is_dir()).context("the kernel has no modules")?;
        let mut files = BTreeMap::new();
        collect(&folder, &folder, &mut files)?;
        let included = fs::read_to_string(folder.join("modules.builtin")).context("read modules.builtin")?;
        let included = included.lines().map(|line| name_of(Path::new(line))).collect();
        Ok(Self { image, version, folder, files, included })
    }

    /// The modules of a flavour with all that they need, by name.
    pub(super) fn modules(&self, flavour: Flavour) -> Result<BTreeMap<String, Module>> {
        let lists: &[&[&str]] = match flavour {
            Flavour::Cloud => &[COMMON],
            Flavour::Full => &[COMMON, FULL],
        };
        let mut open: Vec<String> =
            lists.concat().iter().flat_map(|line| line.split(' ')).map(str::to_owned).collect();
        let mut modules = BTreeMap::new();
        while let Some(name) = open.pop() {
            if modules.contains_key(&name) || self.included.contains(&name) {
                continue;
            }
            let path = self.files.get(&name).with_context(|| format!("the kernel has no module {name}"))?;
            let content = fs::read(self.folder.join(path)).with_context(|| format!("read {name}"))?;
            let depends: Vec<String> = said(&content, "depends")
                .iter()
                .flat_map(|list| list.split(','))
                .filter(|name| !name.is_empty())
                .map(|name| name.replace('-', "_"))
                .collect();
            open.extend(depends.iter().cloned());
            let aliases = said(&content, "alias");
            modules.insert(name, Module { path: path.clone(), content, depends, aliases });
        }
        Ok(modules)
    }
}

/// What `modprobe` reads of which module needs which: what is needed first comes last.
pub(super) fn dependencies(modules: &BTreeMap<String, Module>) -> String {
    let mut text = String::new();
    for (name, module) in modules {
        let mut order = Vec::new();
        load_order(modules, name, &mut order);
        order.pop();
        text += &format!("{}:", module.path.display());
        for needed in order.iter().rev() {
            text += &format!(" {}", modules[*needed].path.display());
        }
        text += "\n";
    }
    text
}

fn load_order<'a>(modules: &'a BTreeMap<String, Module>, name: &'a str, order: &mut Vec<&'a str>) {
    let Some(module) = modules.get(name) else { return };
    if order.contains(&name) {
        return;
    }
    for needed in &module.depends {
        load_order(modules, needed, order);
    }
    order.push(name);
}

/// What `modprobe` reads of which module is for which device.
pub(super) fn aliases(modules: &BTreeMap<String, Module>) -> String {
    let lines = modules
        .iter()
        .flat_map(|(name, module)| module.aliases.iter().map(move |alias| format!("alias {alias} {name}\n")));
    lines.collect()
}

fn collect(folder: &Path, root: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, root, files)?;
        } else if path.extension().is_some_and(|extension| extension == "ko") {
            files.insert(name_of(&path), path.strip_prefix(root)?.to_owned());
        }
    }
    Ok(())
}

/// The kernel takes both signs for the same.
fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().replace('-', "_")
}

/// The values that a module gives a name in its description: a run of texts `NAME=VALUE`, each ended by a zero.
fn said(module: &[u8], name: &str) -> Vec<String> {
    let start = format!("{name}=");
    module
        .split(|byte| *byte == 0)
        .filter_map(|text| text.strip_prefix(start.as_bytes()))
        .filter_map(|text| std::str::from_utf8(text).ok().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str, depends: &[&str]) -> Module {
        let depends = depends.iter().map(|name| (*name).to_owned()).collect();
        Module { path: path.into(), content: Vec::new(), depends, aliases: vec!["pci:*".to_owned()] }
    }

    #[test]
    fn what_is_needed_first_comes_last() {
        let modules = BTreeMap::from([
            ("a".to_owned(), module("a.ko", &["b", "c"])),
            ("b".to_owned(), module("b.ko", &["c"])),
            ("c".to_owned(), module("c.ko", &["included"])),
        ]);
        assert_eq!(dependencies(&modules), "a.ko: b.ko c.ko\nb.ko: c.ko\nc.ko:\n");
        assert_eq!(aliases(&modules), "alias pci:* a\nalias pci:* b\nalias pci:* c\n");
    }

    #[test]
    fn reads_what_a_module_says() {
        let content =
            b"\x7fELF\0\xffjunk\0depends=virtio,virtio-ring\0alias=virtio:d2v*\0alias=x\0adepends=no\0";
        assert_eq!(said(content, "depends"), ["virtio,virtio-ring"]);
        assert_eq!(said(content, "alias"), ["virtio:d2v*", "x"]);
    }
}
