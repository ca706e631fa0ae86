//! Boot firmware: BIOS or EFI, Secure Boot, ACPI tables from volumes, and kernels from container images.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::features::Features;
use kubevirt_api::vmi::firmware::{Acpi, Firmware, KernelBoot};
use kubevirt_api::vmi::volumes::Volume;

use crate::validate::vmi_spec::image_path;
use crate::{Path, Problems};

/// Everything that is wrong.
pub(super) fn check(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let Some(firmware) = &spec.domain.firmware else { return };
    check_boot(&path.at("domain.firmware"), firmware, problems);
    if let Some(acpi) = &firmware.acpi {
        check_acpi(&path.at("acpi"), acpi, spec.volumes.as_deref().unwrap_or_default(), problems);
    }
    // The firmware of TDX guests keeps its keys in read-only memory, which needs no SMM to protect it.
    let tdx = spec.domain.launch_security.as_ref().is_some_and(|security| security.tdx.is_some());
    if boots_securely(firmware) && !smm_is_on(spec.domain.features.as_ref()) && !tdx {
        let message =
            "Secure Boot needs SMM; set features.smm, or firmware.bootloader.efi.secureBoot to false";
        problems.invalid(&path.at("domain"), message);
    }
}

/// What is wrong with how the machine boots; presets say that too.
pub fn check_boot(field: &Path<'_>, firmware: &Firmware, problems: &mut Problems) {
    let bootloader = firmware.bootloader.as_ref();
    if bootloader.is_some_and(|bootloader| bootloader.efi.is_some() && bootloader.bios.is_some()) {
        problems
            .invalid(&field.at("bootloader"), "a machine boots with EFI or with BIOS; remove one of them");
    }
    if let Some(kernel) = &firmware.kernel_boot {
        check_kernel(&field.at("kernelBoot"), kernel, problems);
    }
}

/// Whether the machine boots with EFI and Secure Boot, which is the default of EFI.
fn boots_securely(firmware: &Firmware) -> bool {
    let efi = firmware.bootloader.as_ref().and_then(|bootloader| bootloader.efi.as_ref());
    efi.is_some_and(|efi| efi.secure_boot.unwrap_or(true))
}

/// Whether System Management Mode is on.
pub(super) fn smm_is_on(features: Option<&Features>) -> bool {
    features.and_then(|features| features.smm.as_ref()).is_some_and(|smm| smm.enabled.unwrap_or(true))
}

fn check_kernel(field: &Path<'_>, kernel: &KernelBoot, problems: &mut Problems) {
    let Some(container) = &kernel.container else {
        if kernel.kernel_args.as_ref().is_some_and(|arguments| !arguments.is_empty()) {
            let message = "arguments need a kernel to go to; set container";
            problems.invalid(&field.at("kernelArgs"), message);
        }
        return;
    };
    let field = field.at("container");
    if container.image.is_empty() {
        problems.required(&field.at("image"), format!("{field} must be defined with an image"));
    }
    let kernel = container.kernel_path.as_deref().unwrap_or_default();
    let initrd = container.initrd_path.as_deref().unwrap_or_default();
    if kernel.is_empty() && initrd.is_empty() {
        let paths = "at least one of the following: kernelPath, initrdPath";
        problems.required(&field, format!("{field} must be defined with {paths}"));
    }
    for (name, file) in [("kernelPath", kernel), ("initrdPath", initrd)] {
        if !file.is_empty() {
            image_path::check(&field.at(name), file, problems);
        }
    }
}

fn check_acpi(field: &Path<'_>, acpi: &Acpi, volumes: &[Volume], problems: &mut Problems) {
    let slic = acpi.slic_name_ref.as_deref().unwrap_or_default();
    let msdm = acpi.msdm_name_ref.as_deref().unwrap_or_default();
    if slic.is_empty() && msdm.is_empty() {
        problems.invalid(field, "name a volume with a table in slicNameRef or msdmNameRef");
    }
    for (name, volume) in [("slicNameRef", slic), ("msdmNameRef", msdm)] {
        if volume.is_empty() {
            continue;
        }
        match volumes.iter().find(|candidate| candidate.name == volume) {
            Some(found) if found.secret.is_some() => {}
            Some(_) => problems.invalid(&field.at(name), format!("volume {volume:?} is not of a Secret")),
            None => problems.invalid(&field.at(name), format!("there is no volume {volume:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{reasons, run, run_domain};
    use crate::Reason;
    use crate::testing::World;

    #[test]
    fn bios_or_efi_and_secure_boot_with_smm() {
        let boot = |bootloader: Value, features: Value| json!({ "firmware": { "bootloader": bootloader }, "features": features });
        let none = json!({});
        let insecure = json!({ "efi": { "secureBoot": false } });
        run_domain(
            &World::default(),
            &[
                ("bios", boot(json!({ "bios": {} }), none.clone()), &[]),
                ("efi without secure boot", boot(insecure, none.clone()), &[]),
                ("neither", boot(json!({}), none.clone()), &[]),
                (
                    "both",
                    boot(json!({ "bios": {}, "efi": { "secureBoot": false } }), none.clone()),
                    &["spec.domain.firmware.bootloader"],
                ),
                ("secure by default", boot(json!({ "efi": {} }), none.clone()), &["spec.domain"]),
                ("secure", boot(json!({ "efi": { "secureBoot": true } }), none), &["spec.domain"]),
                ("secure with smm", boot(json!({ "efi": {} }), json!({ "smm": {} })), &[]),
                (
                    "secure with smm on",
                    boot(json!({ "efi": {} }), json!({ "smm": { "enabled": true } })),
                    &[],
                ),
                (
                    "secure with smm off",
                    boot(json!({ "efi": {} }), json!({ "smm": { "enabled": false } })),
                    &["spec.domain"],
                ),
            ],
        );
        run_domain(
            &World::default().with_gates(&["WorkloadEncryptionTDX"]),
            &[(
                "tdx",
                json!({ "firmware": { "bootloader": { "efi": {} } }, "launchSecurity": { "tdx": {} } }),
                &[],
            )],
        );
    }

    #[test]
    fn a_kernel_comes_from_an_image() {
        let kernel = |kernel: Value| json!({ "firmware": { "kernelBoot": kernel } });
        let container = |image: &str, kernel: &str, initrd: &str| {
            json!({ "firmware": { "kernelBoot": { "kernelArgs": "quiet", "container": {
                "image": image, "kernelPath": kernel, "initrdPath": initrd,
            } } } })
        };
        let at = "spec.domain.firmware.kernelBoot.container";
        let at_kernel = "spec.domain.firmware.kernelBoot.container.kernelPath";
        let at_initrd = "spec.domain.firmware.kernelBoot.container.initrdPath";
        run_domain(
            &World::default(),
            &[
                ("empty", kernel(json!({})), &[]),
                (
                    "arguments alone",
                    kernel(json!({ "kernelArgs": "quiet" })),
                    &["spec.domain.firmware.kernelBoot.kernelArgs"],
                ),
                ("no arguments", kernel(json!({ "kernelArgs": "" })), &[]),
                ("both", container("image", "/boot/vmlinuz", "/boot/initrd"), &[]),
                ("kernel", container("image", "/boot/vmlinuz", ""), &[]),
                ("initrd", container("image", "", "/boot/initrd"), &[]),
                ("neither", container("image", "", ""), &[at]),
                (
                    "no image",
                    container("", "/boot/vmlinuz", ""),
                    &["spec.domain.firmware.kernelBoot.container.image"],
                ),
                ("relative kernel", container("image", "boot/vmlinuz", ""), &[at_kernel]),
                ("root", container("image", "/", ""), &[at_kernel]),
                ("detour", container("image", "/boot/../vmlinuz", ""), &[at_kernel]),
                ("double slash", container("image", "/boot//vmlinuz", ""), &[at_kernel]),
                ("slash at the end", container("image", "/boot/vmlinuz/", ""), &[]),
                ("dot", container("image", "/boot/vmlinuz", "/./initrd"), &[at_initrd]),
            ],
        );
        let bare = json!({ "domain": kernel(json!({ "container": { "image": "" } })) });
        assert_eq!(reasons(&World::default(), &bare), [Reason::Required, Reason::Required]);
    }

    #[test]
    fn acpi_tables_come_from_secrets() {
        let acpi = |acpi: Value| {
            json!({
                "domain": { "firmware": { "acpi": acpi } },
                "volumes": [
                    { "name": "table", "secret": { "secretName": "table" } },
                    { "name": "map", "configMap": { "name": "map" } },
                ],
            })
        };
        run(
            &World::default(),
            &[
                ("slic", acpi(json!({ "slicNameRef": "table" })), &[]),
                ("both", acpi(json!({ "slicNameRef": "table", "msdmNameRef": "table" })), &[]),
                ("neither", acpi(json!({})), &["spec.acpi"]),
                ("no such volume", acpi(json!({ "slicNameRef": "other" })), &["spec.acpi.slicNameRef"]),
                ("not a secret", acpi(json!({ "msdmNameRef": "map" })), &["spec.acpi.msdmNameRef"]),
                (
                    "both bad",
                    acpi(json!({ "slicNameRef": "map", "msdmNameRef": "other" })),
                    &["spec.acpi.slicNameRef", "spec.acpi.msdmNameRef"],
                ),
            ],
        );
    }
}
