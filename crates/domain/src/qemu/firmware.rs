//! Firmware images, kernels, SMBIOS and ACPI tables.

use super::args::{Args, Object, escape};
use crate::domain::Domain;
use crate::domain::firmware::Firmware;

pub(super) fn add(domain: &Domain, args: &mut Args) {
    match &domain.firmware {
        Firmware::Builtin { .. } => {}
        Firmware::Rom { path } => args.option("-bios", path.clone()),
        Firmware::Flash { code, vars, secure_boot, .. } => {
            flash(args, "efi-code", "efi-code-file", code, true);
            flash(args, "efi-vars", "efi-vars-file", vars, false);
            if *secure_boot {
                // Only code in System Management Mode may write variables, and waking must not skip that.
                args.option("-global", "driver=cfi.pflash01,property=secure,value=on");
                args.option("-global", "ICH9-LPC.disable_s3=1");
            }
        }
    }
    if let Some(boot) = &domain.kernel {
        let parts = [("-kernel", &boot.kernel), ("-initrd", &boot.initrd), ("-append", &boot.args)];
        for (name, value) in parts.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            args.option(name, value.clone());
        }
    }
    tables(domain, args);
}

fn flash(args: &mut Args, node: &str, file: &str, path: &str, read_only: bool) {
    let storage = Object::default()
        .with("driver", "file")
        .with("node-name", file)
        .with("filename", path)
        .with("read-only", read_only);
    let image = Object::default()
        .with("driver", "raw")
        .with("node-name", node)
        .with("read-only", read_only)
        .with("file", file);
    args.object("-blockdev", &storage);
    args.object("-blockdev", &image);
}

fn tables(domain: &Domain, args: &mut Args) {
    let smbios = &domain.smbios;
    for (number, fields) in [(1, &smbios.system), (3, &smbios.chassis)] {
        if !fields.is_empty() {
            let fields: String =
                fields.iter().map(|(name, value)| format!(",{name}={}", escape(value))).collect();
            args.option("-smbios", format!("type={number}{fields}"));
        }
    }
    if !smbios.oem_strings.is_empty() {
        let values: String =
            smbios.oem_strings.iter().map(|value| format!(",value={}", escape(value))).collect();
        args.option("-smbios", format!("type=11{values}"));
    }
    for table in &smbios.acpi_tables {
        args.option("-acpitable", format!("sig={},file={}", table.signature, escape(&table.path)));
    }
    for (name, path) in &smbios.fw_cfg {
        args.option("-fw_cfg", format!("name={},file={}", escape(name), escape(path)));
    }
}
