//! What KVM offers beyond running a guest: the interfaces of Hyper-V and the time stamp counter.

/// What KVM offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// The interfaces of Hyper-V that guests can use.
    pub hyperv: Vec<&'static str>,
    /// The time stamp counter.
    pub tsc: Option<TimeStampCounter>,
}

/// The counter by which guests tell time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeStampCounter {
    /// Its frequency in Hertz.
    pub frequency: u64,
    /// Whether guests can have another frequency.
    pub scalable: bool,
}

/// Asks KVM; nothing is offered where there is none.
#[cfg(target_arch = "x86_64")]
pub fn abilities() -> Abilities {
    let Ok(kvm) = kvm_ioctls::Kvm::new() else { return Abilities::default() };
    let list = kvm.get_msr_index_list();
    let registers = list.as_ref().map(kvm_bindings::MsrList::as_slice).unwrap_or_default();
    let hyperv = hyperv(|extension| kvm.check_extension_raw(extension.into()) > 0, registers);
    Abilities { hyperv, tsc: counter(&kvm) }
}

/// Asks KVM; these are abilities of x86 only.
#[cfg(not(target_arch = "x86_64"))]
pub fn abilities() -> Abilities {
    Abilities::default()
}

#[cfg(target_arch = "x86_64")]
fn counter(kvm: &kvm_ioctls::Kvm) -> Option<TimeStampCounter> {
    use kvm_ioctls::Cap;

    if !kvm.check_extension(Cap::GetTscKhz) {
        return None;
    }
    let machine = kvm.create_vm().ok()?;
    let kilohertz = machine.create_vcpu(0).ok()?.get_tsc_khz().ok()?;
    let scalable = kvm.check_extension(Cap::TscControl);
    (kilohertz > 0).then_some(TimeStampCounter { frequency: u64::from(kilohertz) * 1000, scalable })
}

/// An interface of Hyper-V: its name, and the extension of KVM or the register that it comes with.
#[cfg(target_arch = "x86_64")]
const HYPERV: [(&str, Needs); 12] = {
    use kvm_bindings as kvm;
    [
        ("base", Needs::Extension(kvm::KVM_CAP_HYPERV)),
        ("time", Needs::Extension(kvm::KVM_CAP_HYPERV_TIME)),
        ("vpindex", Needs::Extension(kvm::KVM_CAP_HYPERV_VP_INDEX)),
        ("tlbflush", Needs::Extension(kvm::KVM_CAP_HYPERV_TLBFLUSH)),
        ("ipi", Needs::Extension(kvm::KVM_CAP_HYPERV_SEND_IPI)),
        ("synic", Needs::Extension(kvm::KVM_CAP_HYPERV_SYNIC)),
        ("synic2", Needs::Extension(kvm::KVM_CAP_HYPERV_SYNIC2)),
        ("frequencies", Needs::Register(0x4000_0022)),
        ("reset", Needs::Register(0x4000_0003)),
        ("runtime", Needs::Register(0x4000_0010)),
        ("synictimer", Needs::Register(0x4000_00b0)),
        ("reenlightenment", Needs::Register(0x4000_0106)),
    ]
};

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
enum Needs {
    Extension(u32),
    Register(u32),
}

#[cfg(target_arch = "x86_64")]
fn hyperv(has_extension: impl Fn(u32) -> bool, registers: &[u32]) -> Vec<&'static str> {
    let is_there = |needs: Needs| match needs {
        Needs::Extension(number) => has_extension(number),
        Needs::Register(number) => registers.contains(&number),
    };
    HYPERV.iter().filter(|(_, needs)| is_there(*needs)).map(|(name, _)| *name).collect()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn interfaces_come_with_extensions_or_registers() {
        assert_eq!(hyperv(|_| false, &[]), [""; 0]);
        assert_eq!(hyperv(|number| number == 44, &[0x4000_0003, 7]), ["base", "reset"]);
        assert_eq!(hyperv(|_| true, &[]).len(), 7);
    }

    #[test]
    fn asks_this_host() {
        println!("{:?}", abilities());
    }
}
