//! What a machine says about itself: SMBIOS, ACPI tables and files of the firmware interface.

use kubevirt_api::names::annotations;

use super::{Conversion, text};
use crate::domain::Architecture;
use crate::domain::firmware::{AcpiTable, Smbios};

/// The tables of a machine.
pub(super) fn convert(c: &mut Conversion<'_>) -> Smbios {
    let has_smbios = c.architecture != Architecture::S390x;
    Smbios {
        system: if has_smbios { system(c) } else { Vec::new() },
        chassis: if has_smbios { chassis(c) } else { Vec::new() },
        oem_strings: Vec::new(),
        acpi_tables: acpi_tables(c),
        fw_cfg: ignition(c),
    }
}

fn system(c: &Conversion<'_>) -> Vec<(String, String)> {
    let firmware = c.spec.firmware.clone().unwrap_or_default();
    let facts = &c.host.smbios;
    fields([
        ("manufacturer", &facts.manufacturer),
        ("product", &facts.product),
        ("version", &facts.version),
        ("serial", &firmware.serial.unwrap_or_default()),
        ("uuid", &firmware.uuid.unwrap_or_default()),
        ("sku", &facts.sku),
        ("family", &facts.family),
    ])
}

fn chassis(c: &Conversion<'_>) -> Vec<(String, String)> {
    let chassis = c.spec.chassis.clone().unwrap_or_default();
    fields([
        ("manufacturer", &chassis.manufacturer.unwrap_or_default()),
        ("version", &chassis.version.unwrap_or_default()),
        ("serial", &chassis.serial.unwrap_or_default()),
        ("asset", &chassis.asset.unwrap_or_default()),
        ("sku", &chassis.sku.unwrap_or_default()),
    ])
}

fn fields<const N: usize>(fields: [(&str, &String); N]) -> Vec<(String, String)> {
    let set = fields.into_iter().filter(|(_, value)| !value.is_empty());
    set.map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

fn acpi_tables(c: &mut Conversion<'_>) -> Vec<AcpiTable> {
    let Some(acpi) = c.spec.firmware.as_ref().and_then(|firmware| firmware.acpi.clone()) else {
        return Vec::new();
    };
    let asked = [
        ("slic", "slicNameRef", text(&acpi.slic_name_ref)),
        ("msdm", "msdmNameRef", text(&acpi.msdm_name_ref)),
    ];
    let mut tables = Vec::new();
    for (table, field, volume) in asked {
        let Some(volume) = volume else { continue };
        let mut volumes = c.vmi.spec.volumes.iter().flatten();
        if !volumes.any(|known| known.name == volume && known.secret.is_some()) {
            let reason = format_args!("there is no Secret volume {volume:?}");
            c.unsupported(format!("spec.domain.firmware.acpi.{field}"), reason);
        }
        tables.push(AcpiTable { signature: table.to_uppercase(), path: c.layout.acpi_table(&volume, table) });
    }
    tables
}

fn ignition(c: &Conversion<'_>) -> Vec<(String, String)> {
    let data = c.annotation(annotations::IGNITION_DATA).filter(|data| data.contains("ignition"));
    data.map(|_| ("opt/com.coreos/config".to_owned(), c.layout.ignition(c.namespace(), c.name())))
        .into_iter()
        .collect()
}
