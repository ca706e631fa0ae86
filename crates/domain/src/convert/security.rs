//! Protection of the guest from its host, where host and QEMU have it.

use kubevirt_api::names::annotations;
use kubevirt_api::vmi::launch_security::Sev;

use super::{Conversion, text};
use crate::domain::security::LaunchSecurity;
use crate::domain::{Architecture, FileContent};
use crate::facts::SevFacts;

/// The guest must not be debugged.
const NO_DEBUG: u32 = 1 << 0;
/// CPU registers are encrypted too.
const ENCRYPTED_STATE: u32 = 1 << 2;
/// Simultaneous threads are allowed, and a bit that is always set.
const SNP_POLICY: u64 = 1 << 16 | 1 << 17;

/// What protects the guest.
pub(super) fn convert(c: &mut Conversion<'_>) -> Option<LaunchSecurity> {
    let field = "spec.domain.launchSecurity";
    let security = c.spec.launch_security.as_ref()?;
    match c.architecture {
        Architecture::Amd64 => {}
        Architecture::Arm64 => {
            c.unsupported(field, "arm64 has none");
            return None;
        }
        // The host turns protection on by itself; devices only have to be ready for it.
        Architecture::S390x => return None,
    }
    if !c.is_kvm() {
        c.unsupported(field, "it needs KVM");
    }
    let kernel_hashes = c.spec.firmware.as_ref().is_some_and(|firmware| firmware.kernel_boot.is_some());
    if let Some(sev) = &security.sev {
        return Some(secure_encrypted(c, sev, kernel_hashes));
    }
    if security.snp.is_some() {
        c.require_qemu("spec.domain.launchSecurity.snp", "SEV-SNP", (9, 1));
        let SevFacts { c_bit_position, reduced_phys_bits } = facts(c, "spec.domain.launchSecurity.snp");
        return Some(LaunchSecurity::Snp {
            policy: SNP_POLICY,
            c_bit_position,
            reduced_phys_bits,
            kernel_hashes,
        });
    }
    if security.tdx.is_some() {
        c.require_qemu("spec.domain.launchSecurity.tdx", "TDX", (10, 1));
        let quote_socket = c.annotation(annotations::QGS_SOCKET_PATH).map(str::to_owned);
        return Some(LaunchSecurity::Tdx { quote_socket });
    }
    c.unsupported(field, "it names no technology");
    None
}

fn secure_encrypted(c: &mut Conversion<'_>, sev: &Sev, kernel_hashes: bool) -> LaunchSecurity {
    let SevFacts { c_bit_position, reduced_phys_bits } = facts(c, "spec.domain.launchSecurity.sev");
    let encrypted_state = sev.policy.as_ref().is_some_and(|policy| policy.encrypted_state == Some(true));
    let mut file = |name: &str, content: &Option<String>| {
        let content = text(content)?;
        let path = c.layout.machine(c.uid(), name);
        c.files.push(FileContent { path: path.clone(), content });
        Some(path)
    };
    LaunchSecurity::Sev {
        policy: NO_DEBUG | if encrypted_state { ENCRYPTED_STATE } else { 0 },
        c_bit_position,
        reduced_phys_bits,
        dh_cert_file: file("sev-dh-cert.base64", &sev.dh_cert),
        session_file: file("sev-session.base64", &sev.session),
        kernel_hashes,
    }
}

fn facts(c: &mut Conversion<'_>, field: &str) -> SevFacts {
    c.host.sev.unwrap_or_else(|| {
        c.unsupported(field, "this host has no AMD SEV");
        SevFacts::default()
    })
}
