//! Protection of the guest from its host.

use serde::{Deserialize, Serialize};

/// Protection of the guest from its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LaunchSecurity {
    /// AMD SEV, or SEV-ES by its policy.
    Sev {
        /// Bits of the guest policy.
        policy: u32,
        /// Position of the encryption bit in an address.
        c_bit_position: u32,
        /// Address bits lost to encryption.
        reduced_phys_bits: u32,
        /// File with the guest owner's certificate.
        dh_cert_file: Option<String>,
        /// File with the guest owner's session.
        session_file: Option<String>,
        /// The started kernel is part of what is measured.
        kernel_hashes: bool,
    },
    /// AMD SEV-SNP.
    Snp {
        /// Bits of the guest policy.
        policy: u64,
        /// Position of the encryption bit in an address.
        c_bit_position: u32,
        /// Address bits lost to encryption.
        reduced_phys_bits: u32,
        /// The started kernel is part of what is measured.
        kernel_hashes: bool,
    },
    /// Intel TDX.
    Tdx {
        /// Socket of the service that signs quotes.
        quote_socket: Option<String>,
    },
}

impl LaunchSecurity {
    /// Whether interrupts of the guest must not be handled in the kernel alone.
    pub fn needs_split_irqchip(&self) -> bool {
        !matches!(self, Self::Sev { .. })
    }
}
