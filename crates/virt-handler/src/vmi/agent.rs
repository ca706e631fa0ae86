//! Whether a guest agent can do what is asked of it.

use kubevirt_api::vmi::VirtualMachineInstance;

/// Commands that every agent must know.
const BASIC: [&str; 10] = [
    "guest-ping",
    "guest-get-time",
    "guest-info",
    "guest-shutdown",
    "guest-network-get-interfaces",
    "guest-get-fsinfo",
    "guest-get-host-name",
    "guest-get-users",
    "guest-get-timezone",
    "guest-get-osinfo",
];

/// Commands for ssh keys.
const KEYS: [&str; 3] =
    ["guest-ssh-get-authorized-keys", "guest-ssh-add-authorized-keys", "guest-ssh-remove-authorized-keys"];

/// The longer way to ssh keys, for agents that do not know the shorter one.
const FILES: [&str; 6] = [
    "guest-exec-status",
    "guest-exec",
    "guest-file-open",
    "guest-file-close",
    "guest-file-read",
    "guest-file-write",
];

/// Commands for passwords.
const PASSWORDS: [&str; 1] = ["guest-set-user-password"];

/// What the agent lacks, given the commands that it knows. One that does not tell is trusted.
pub fn lacks(vmi: &VirtualMachineInstance, commands: &[String]) -> Option<&'static str> {
    let knows = |wanted: &[&str]| wanted.iter().all(|name| commands.iter().any(|command| command == name));
    let credentials = || vmi.spec.access_credentials.iter().flatten();
    let keys = credentials().any(|credential| {
        credential
            .ssh_public_key
            .as_ref()
            .is_some_and(|key| key.propagation_method.qemu_guest_agent.is_some())
    });
    let passwords = credentials().any(|credential| {
        credential
            .user_password
            .as_ref()
            .is_some_and(|word| word.propagation_method.qemu_guest_agent.is_some())
    });
    if commands.is_empty() {
        None
    } else if !knows(&BASIC) {
        Some("The guest agent lacks basic commands")
    } else if keys && !knows(&KEYS) && !knows(&FILES) {
        Some("The guest agent lacks commands for ssh keys")
    } else if passwords && !knows(&PASSWORDS) {
        Some("The guest agent lacks commands for passwords")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_agent_lacks_depends_on_what_is_asked_of_it() {
        let secret = json!({"secret": {"secretName": "s"}});
        let by_agent = json!({"qemuGuestAgent": {"users": ["root"]}});
        let vmi = |credentials: serde_json::Value| -> VirtualMachineInstance {
            serde_json::from_value(
                json!({"spec": {"domain": {"devices": {}}, "accessCredentials": credentials}}),
            )
            .unwrap()
        };
        let plain = vmi(json!([]));
        let keys = vmi(json!([{"sshPublicKey": {"source": secret, "propagationMethod": by_agent}}]));
        let words =
            vmi(json!([{"userPassword": {"source": secret, "propagationMethod": {"qemuGuestAgent": {}}}}]));
        let with = |more: &[&str]| -> Vec<String> {
            BASIC.iter().chain(more).map(|name| (*name).to_owned()).collect()
        };
        let cases = [
            (&plain, vec![], false),
            (&plain, vec!["guest-ping".to_owned()], true),
            (&plain, with(&[]), false),
            (&keys, with(&[]), true),
            (&keys, with(&KEYS), false),
            (&keys, with(&FILES), false),
            (&words, with(&KEYS), true),
            (&words, with(&PASSWORDS), false),
        ];
        for (vmi, commands, expected) in cases {
            assert_eq!(lacks(vmi, &commands).is_some(), expected, "{commands:?}");
        }
    }
}
