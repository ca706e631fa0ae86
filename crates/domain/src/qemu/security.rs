//! Protection of the guest from its host.

use serde_json::json;

use super::args::{Args, Object};
use crate::domain::Domain;
use crate::domain::security::LaunchSecurity;

pub(super) fn add(domain: &Domain, args: &mut Args) {
    let Some(security) = &domain.launch_security else { return };
    let object = match security {
        LaunchSecurity::Sev {
            policy,
            c_bit_position,
            reduced_phys_bits,
            dh_cert_file,
            session_file,
            kernel_hashes,
        } => Object::qom("sev-guest", "lsec0")
            .with("cbitpos", *c_bit_position)
            .with("reduced-phys-bits", *reduced_phys_bits)
            .with("policy", *policy)
            .maybe("dh-cert-file", dh_cert_file.clone())
            .maybe("session-file", session_file.clone())
            .on("kernel-hashes", *kernel_hashes),
        LaunchSecurity::Snp { policy, c_bit_position, reduced_phys_bits, kernel_hashes } => {
            Object::qom("sev-snp-guest", "lsec0")
                .with("cbitpos", *c_bit_position)
                .with("reduced-phys-bits", *reduced_phys_bits)
                .with("policy", *policy)
                .on("kernel-hashes", *kernel_hashes)
        }
        LaunchSecurity::Tdx { quote_socket } => {
            let socket = quote_socket.as_ref().map(|path| json!({ "path": path, "type": "unix" }));
            Object::qom("tdx-guest", "lsec0").maybe("quote-generation-socket", socket)
        }
    };
    args.object("-object", &object);
}
