//! Whether machines run with KVM or by emulation.

use super::Kvm;

/// What runs the instructions of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// The host's CPUs.
    Kvm,
    /// Software, some ten times slower.
    Emulation {
        /// Why, for the log.
        because: String,
    },
}

/// Machines cannot run on this host as things are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this host cannot run virtual machines, for {kvm}, and software emulation is not allowed: \
     use a host that has KVM, or set spec.configuration.developerConfiguration.useEmulation of the KubeVirt object to true"
)]
pub struct NoAccelerator {
    /// What became of KVM.
    pub kvm: Kvm,
}

/// Chooses: KVM where it works, emulation where that is allowed instead, or where it is forced.
pub fn accelerator(
    kvm: &Kvm,
    allow_emulation: bool,
    force_emulation: bool,
) -> Result<Accelerator, NoAccelerator> {
    if force_emulation {
        return Ok(Accelerator::Emulation { because: "software emulation was asked for".into() });
    }
    match kvm {
        Kvm::Usable => Ok(Accelerator::Kvm),
        _ if allow_emulation => Ok(Accelerator::Emulation { because: kvm.to_string() }),
        _ => Err(NoAccelerator { kvm: kvm.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefers_kvm_and_says_why_not() {
        let broken = Kvm::Unusable { reason: "SSE failed".into() };
        let emulation = |because: &str| Ok(Accelerator::Emulation { because: because.into() });
        let refused = |kvm: &Kvm| Err(NoAccelerator { kvm: kvm.clone() });
        for (kvm, allow, force, expected) in [
            (&Kvm::Usable, false, false, Ok(Accelerator::Kvm)),
            (&Kvm::Usable, true, false, Ok(Accelerator::Kvm)),
            (&Kvm::Usable, false, true, emulation("software emulation was asked for")),
            (&Kvm::Missing, true, false, emulation("there is no /dev/kvm")),
            (&Kvm::Missing, false, false, refused(&Kvm::Missing)),
            (&broken, true, false, emulation("/dev/kvm is unusable: SSE failed")),
            (&broken, false, true, emulation("software emulation was asked for")),
            (&broken, false, false, refused(&broken)),
        ] {
            assert_eq!(accelerator(kvm, allow, force), expected, "{kvm} {allow} {force}");
        }
    }

    #[test]
    fn names_the_way_out() {
        let words = accelerator(&Kvm::Missing, false, false).unwrap_err().to_string();
        assert!(words.contains("there is no /dev/kvm"), "{words}");
        assert!(words.contains("spec.configuration.developerConfiguration.useEmulation"), "{words}");
    }
}
