//! Names that follow from what they are for, so that a second attempt at the same thing finds the first.

use kubevirt_api::vmi::VirtualMachineInstance;
use ring::digest::{SHA256, digest};

use super::surroundings::{Purpose, Surroundings};

/// The longest name that is also a label, as pods' names are in many places.
const LONGEST: usize = 63;

/// Length of what tells names apart: 5 bits a letter.
const SUFFIX: usize = 8;

/// Letters that spell no words and cannot be mistaken for each other.
const LETTERS: &[u8; 32] = b"0123456789bcdfghjkmnpqrstvwxyzae";

/// Name of the pod that runs a VMI, by how many were made before.
pub fn launcher_name(vmi: &VirtualMachineInstance, attempt: u32) -> String {
    named(vmi, &[&attempt.to_string()])
}

/// Name of the pod of a VMI.
pub(super) fn of(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> String {
    match around.purpose {
        Purpose::Run => launcher_name(vmi, around.attempt),
        Purpose::Provision => named(vmi, &[&around.attempt.to_string(), "provision"]),
    }
}

fn named(vmi: &VirtualMachineInstance, parts: &[&str]) -> String {
    let name = vmi.metadata.name.as_deref().unwrap_or_default();
    let uid = vmi.metadata.uid.as_deref().unwrap_or_default();
    limited(&format!("virt-launcher-{name}"), &[&[uid], parts].concat())
}

/// Name of the pod that holds these plugged volumes for a launcher pod, by how many were made for them before.
pub fn attachment_name<'a>(
    launcher_uid: &str,
    volumes: impl IntoIterator<Item = &'a str>,
    attempt: u32,
) -> String {
    let attempt = attempt.to_string();
    let mut parts: Vec<&str> = volumes.into_iter().collect();
    parts.sort_unstable();
    parts.extend([launcher_uid, &attempt]);
    limited("hp-volume", &parts)
}

fn limited(name: &str, parts: &[&str]) -> String {
    let most = LONGEST - SUFFIX - 1;
    let end = (0..=most.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    let kept = name[..end].trim_end_matches(['-', '.']);
    format!("{kept}-{}", suffix(parts))
}

fn suffix(parts: &[&str]) -> String {
    // No part can hold a slash.
    let hash = digest(&SHA256, parts.join("/").as_bytes());
    hash.as_ref().iter().take(SUFFIX).map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

/// A number below `bound` that follows from a text.
pub(super) fn spread(text: &str, bound: u64) -> u64 {
    let hash = digest(&SHA256, text.as_bytes());
    let number = hash.as_ref().iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    number % bound.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vmi(name: &str, uid: &str) -> VirtualMachineInstance {
        let mut vmi = VirtualMachineInstance::new(name, Default::default());
        vmi.metadata.uid = Some(uid.into());
        vmi
    }

    #[test]
    fn a_name_follows_from_the_vmi_and_the_attempt() {
        let first = launcher_name(&vmi("web", "u1"), 0);
        assert!(
            first.starts_with("virt-launcher-web-") && first.len() == "virt-launcher-web-".len() + SUFFIX
        );
        assert_eq!(first, launcher_name(&vmi("web", "u1"), 0));
        assert_ne!(first, launcher_name(&vmi("web", "u1"), 1));
        assert_ne!(first, launcher_name(&vmi("web", "u2"), 0));
    }

    #[test]
    fn a_long_name_is_cut_and_stays_a_name() {
        for name in ["x".repeat(253), format!("{}.b", "a".repeat(39)), "ü".repeat(40)] {
            let made = launcher_name(&vmi(&name, "u"), 0);
            assert!(made.len() <= LONGEST && !made.contains(".-") && !made.contains("--"), "{made}");
        }
    }

    #[test]
    fn an_attachment_is_told_by_its_volumes_in_any_order() {
        assert_eq!(attachment_name("u", ["a", "b"], 0), attachment_name("u", ["b", "a"], 0));
        assert_ne!(attachment_name("u", ["a", "b"], 0), attachment_name("u", ["a"], 0));
        assert_ne!(attachment_name("u", ["a"], 1), attachment_name("u", ["a"], 0));
        assert!(attachment_name("u", ["a"], 0).starts_with("hp-volume-"));
    }
}
