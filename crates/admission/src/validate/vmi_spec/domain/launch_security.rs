//! Confidential guests: one technology, its feature gate, and what it does not work with.

use kubevirt_api::vmi::launch_security::LaunchSecurity;
use kubevirt_api::vmi::{StartStrategy, VirtualMachineInstanceSpec};

use super::firmware::smm_is_on;
use crate::{Context, Gate, Path, Problems};

/// A technology that protects the memory of a guest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Technology {
    Sev,
    Snp,
    Tdx,
}

impl Technology {
    fn name(self) -> &'static str {
        match self {
            Self::Sev => "SEV",
            Self::Snp => "SEV-SNP",
            Self::Tdx => "TDX",
        }
    }

    fn gate(self) -> Gate {
        match self {
            Self::Sev | Self::Snp => Gate::WorkloadEncryptionSev,
            Self::Tdx => Gate::WorkloadEncryptionTdx,
        }
    }
}

/// Everything that is wrong.
pub(super) fn check(
    cx: &Context<'_>,
    path: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let Some(security) = &spec.domain.launch_security else { return };
    match spec.architecture.as_deref().unwrap_or_default() {
        "amd64" => check_amd64(cx, path, spec, security, problems),
        // Secure Execution takes no settings.
        "s390x" => {}
        other => {
            let message = format!("launchSecurity works on amd64 and s390x, not on {other:?}");
            problems.invalid(&path.at("architecture"), message);
        }
    }
}

fn check_amd64(
    cx: &Context<'_>,
    path: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    security: &LaunchSecurity,
    problems: &mut Problems,
) {
    let field = path.at("launchSecurity");
    let technology = match (&security.sev, &security.snp, &security.tdx) {
        (Some(_), None, None) => Technology::Sev,
        (None, Some(_), None) => Technology::Snp,
        (None, None, Some(_)) => Technology::Tdx,
        _ => {
            problems.forbidden(&field, "set exactly one of sev, snp and tdx");
            return;
        }
    };
    let name = technology.name();
    let gate = technology.gate();
    if !cx.config.enabled(gate) {
        problems.invalid(&field, format!("{name} needs the feature gate {}, which is off", gate.name()));
        return;
    }
    if technology == Technology::Tdx && smm_is_on(spec.domain.features.as_ref()) {
        problems.invalid(&field, "TDX does not work with SMM; set features.smm.enabled to false");
    }
    check_firmware(&field, spec, technology, problems);
    let attested = security.sev.as_ref().is_some_and(|sev| sev.attestation.is_some());
    let paused = spec.start_strategy == Some(StartStrategy::Paused);
    if attested && !paused {
        problems.invalid(&field, "attestation needs a guest that waits for it; set startStrategy to Paused");
    }
    for interface in spec.domain.devices.interfaces.iter().flatten() {
        if interface.boot_order.is_some() {
            let message = format!("{name} guests cannot boot from the network, as {:?} asks", interface.name);
            problems.invalid(&field, message);
        }
    }
}

fn check_firmware(
    field: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    technology: Technology,
    problems: &mut Problems,
) {
    let name = technology.name();
    let bootloader = spec.domain.firmware.as_ref().and_then(|firmware| firmware.bootloader.as_ref());
    let Some(efi) = bootloader.and_then(|bootloader| bootloader.efi.as_ref()) else {
        problems.invalid(field, format!("{name} guests boot with EFI; set firmware.bootloader.efi"));
        return;
    };
    if technology != Technology::Tdx && efi.secure_boot.unwrap_or(true) {
        let message = format!("{name} does not work with Secure Boot; set efi.secureBoot to false");
        problems.invalid(field, message);
    }
    if technology != Technology::Sev && efi.persistent.unwrap_or_default() {
        let message = format!("{name} does not work with EFI variables that persist; remove efi.persistent");
        problems.invalid(field, message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{reasons, run};
    use crate::Reason;
    use crate::testing::{World, patched};

    fn secure(security: Value, patch: Value) -> Value {
        let base = json!({ "domain": {
            "launchSecurity": security,
            "firmware": { "bootloader": { "efi": { "secureBoot": false } } },
        } });
        patched(&base, &patch)
    }

    #[test]
    fn one_technology_that_the_cluster_allows() {
        let at = "spec.launchSecurity";
        let none = json!({});
        run(
            &World::default(),
            &[
                ("sev", secure(json!({ "sev": {} }), none.clone()), &[]),
                ("snp", secure(json!({ "snp": {} }), none.clone()), &[]),
                ("tdx is off", secure(json!({ "tdx": {} }), none.clone()), &[at]),
                ("none", secure(json!({}), none.clone()), &[at]),
                ("two", secure(json!({ "sev": {}, "snp": {} }), none.clone()), &[at]),
                ("s390x", secure(json!({}), json!({ "architecture": "s390x" })), &[]),
                ("arm64", secure(json!({}), json!({ "architecture": "arm64" })), &["spec.architecture"]),
            ],
        );
        let disabled = World::default().with_configuration(
            json!({ "developerConfiguration": { "disabledFeatureGates": ["WorkloadEncryptionSEV"] } }),
        );
        run(&disabled, &[("sev is off", secure(json!({ "sev": {} }), none.clone()), &[at])]);
        assert_eq!(reasons(&World::default(), &secure(json!({}), none)), [Reason::Forbidden]);
    }

    #[test]
    fn what_confidential_guests_do_not_work_with() {
        let at = "spec.launchSecurity";
        let efi = |efi: Value| json!({ "domain": { "firmware": { "bootloader": { "efi": efi } } } });
        let smm = json!({ "domain": { "features": { "smm": {} } } });
        let by_default = json!({ "domain": {
            "features": { "smm": {} },
            "firmware": { "bootloader": { "efi": { "secureBoot": null } } },
        } });
        let (sev, snp, tdx) = (json!({ "sev": {} }), json!({ "snp": {} }), json!({ "tdx": {} }));
        let attested = json!({ "sev": { "attestation": {} } });
        let nic = json!({ "domain": { "devices": { "interfaces": [{ "name": "default", "bridge": {}, "bootOrder": 1 }] } } });
        run(
            &World::default().with_gates(&["WorkloadEncryptionTDX"]),
            &[
                ("tdx", secure(tdx.clone(), json!({})), &[]),
                ("tdx with smm", secure(tdx.clone(), smm.clone()), &[at]),
                ("sev with smm", secure(sev.clone(), smm.clone()), &[]),
                ("sev without efi", secure(sev.clone(), json!({ "domain": { "firmware": null } })), &[at]),
                ("tdx without efi", secure(tdx.clone(), json!({ "domain": { "firmware": null } })), &[at]),
                (
                    "sev with secure boot",
                    secure(sev.clone(), patched(&smm, &efi(json!({ "secureBoot": true })))),
                    &[at],
                ),
                ("snp with secure boot", secure(snp.clone(), by_default), &[at]),
                ("tdx with secure boot", secure(tdx.clone(), efi(json!({ "secureBoot": true }))), &[]),
                ("sev with persistent efi", secure(sev.clone(), efi(json!({ "persistent": true }))), &[]),
                ("snp with persistent efi", secure(snp, efi(json!({ "persistent": true }))), &[at]),
                ("tdx with persistent efi", secure(tdx.clone(), efi(json!({ "persistent": true }))), &[at]),
                ("attested", secure(attested.clone(), json!({})), &[at]),
                ("attested and paused", secure(attested, json!({ "startStrategy": "Paused" })), &[]),
                ("sev with bootable nic", secure(sev, nic.clone()), &[at]),
                ("tdx with bootable nic", secure(tdx, nic), &[at]),
            ],
        );
    }
}
