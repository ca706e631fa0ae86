//! The emulator of a trusted platform module: a process of its own beside QEMU.

use crate::domain::Domain;

/// How to run the emulator of a machine's TPM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swtpm {
    /// Folder of its state; it and its parents are to be made for this user alone.
    pub state: String,
    /// Arguments of `swtpm_setup`, which makes the first state; only if the folder is empty.
    pub setup: Option<Vec<String>>,
    /// Arguments of `swtpm`, which ends when QEMU closes its end of the socket.
    pub arguments: Vec<String>,
}

/// What there is to know before an emulator starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwtpmFacts {
    /// The machine migrates here, and its state comes with it.
    pub incoming: bool,
    /// The emulator can leave shared state to the one on the other side: swtpm 0.8 and later.
    pub releases_lock: bool,
}

impl Swtpm {
    /// The emulator that a domain needs, if it has a TPM.
    pub fn of(domain: &Domain, facts: SwtpmFacts) -> Option<Self> {
        let tpm = domain.devices.tpm.as_ref()?;
        let strings = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
        let (control, state) =
            (format!("type=unixio,path={},mode=0600", tpm.socket), format!("dir={},mode=0600", tpm.state));
        let mut arguments =
            strings(&["socket", "--ctrl", &control, "--tpmstate", &state, "--tpm2", "--terminate"]);
        if tpm.persistent && facts.releases_lock {
            let incoming = if facts.incoming { ",incoming" } else { "" };
            arguments.extend(["--migration".to_owned(), format!("release-lock-outgoing{incoming}")]);
        }
        let id = domain.identity.uuid.as_ref().unwrap_or(&domain.identity.uid);
        let machine = format!("{}:{id}", domain.name());
        let setup = strings(&[
            "--tpm2",
            "--tpm-state",
            &tpm.state,
            "--vmid",
            &machine,
            "--createek",
            "--create-ek-cert",
            "--create-platform-cert",
            "--lock-nvram",
            "--not-overwrite",
        ]);
        Some(Self { state: tpm.state.clone(), setup: (!facts.incoming).then_some(setup), arguments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostFacts, Layout, QemuFacts, convert};
    use kubevirt_api::vmi::VirtualMachineInstance;

    fn domain(devices: &str) -> Domain {
        let mut vmi = VirtualMachineInstance::new("web", Default::default());
        vmi.metadata.uid = Some("u".into());
        let text =
            format!(r#"{{"memory":{{"guest":"1Gi"}},"firmware":{{"uuid":"id"}},"devices":{devices}}}"#);
        vmi.spec.domain = serde_json::from_str(&text).unwrap();
        convert(&vmi, &HostFacts::default(), &QemuFacts::default(), &Layout::default()).unwrap()
    }

    #[test]
    fn state_lies_where_the_claim_is_mounted() {
        let swtpm = Swtpm::of(&domain(r#"{"tpm":{"persistent":true}}"#), SwtpmFacts::default()).unwrap();
        assert_eq!(swtpm.state, "/var/run/kubevirt-private/libvirt/qemu/swtpm/id/tpm2");
        assert!(swtpm.setup.unwrap().contains(&"default_web:id".to_owned()));
        assert_eq!(
            swtpm.arguments.join(" "),
            "socket --ctrl type=unixio,path=/var/run/kubevirt-private/u/swtpm.sock,mode=0600 --tpmstate \
             dir=/var/run/kubevirt-private/libvirt/qemu/swtpm/id/tpm2,mode=0600 --tpm2 --terminate"
        );
    }

    #[test]
    fn shared_state_is_left_to_the_other_side() {
        let facts = SwtpmFacts { incoming: true, releases_lock: true };
        let swtpm = Swtpm::of(&domain(r#"{"tpm":{"persistent":true}}"#), facts).unwrap();
        assert_eq!(swtpm.setup, None);
        assert!(swtpm.arguments.ends_with(&["--migration".into(), "release-lock-outgoing,incoming".into()]));
        let own = Swtpm::of(&domain(r#"{"tpm":{}}"#), facts).unwrap();
        assert!(!own.arguments.contains(&"--migration".to_owned()));
        assert_eq!(Swtpm::of(&domain("{}"), facts), None);
    }
}
