//! Access credentials: one kind each, from one source, by one way into the guest.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::access_credentials::{SshPublicKey, UserPassword};

use crate::{Path, Problems};

/// Everything that is wrong.
pub(super) fn check(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let list = path.at("accessCredentials");
    for (index, credential) in spec.access_credentials.iter().flatten().enumerate() {
        let field = list.index(index);
        if let Some(keys) = &credential.ssh_public_key {
            check_keys(&field.at("sshPublicKey"), keys, spec, problems);
        }
        if let Some(passwords) = &credential.user_password {
            check_passwords(&field.at("userPassword"), passwords, problems);
        }
        if credential.ssh_public_key.is_some() == credential.user_password.is_some() {
            problems.invalid(&field, "a credential is either sshPublicKey or userPassword");
        }
    }
}

fn check_keys(
    field: &Path<'_>,
    keys: &SshPublicKey,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let method = &keys.propagation_method;
    let at_method = field.at("propagationMethod");
    let mut volumes = spec.volumes.iter().flatten();
    if method.no_cloud.is_some() && !volumes.clone().any(|volume| volume.cloud_init_no_cloud.is_some()) {
        problems.invalid(&at_method, "noCloud puts keys into a cloudInitNoCloud volume, and there is none");
    }
    if method.config_drive.is_some() && !volumes.any(|volume| volume.cloud_init_config_drive.is_some()) {
        let message = "configDrive puts keys into a cloudInitConfigDrive volume, and there is none";
        problems.invalid(&at_method, message);
    }
    if method.qemu_guest_agent.as_ref().is_some_and(|agent| agent.users.is_empty()) {
        let message = "name at least one user of the guest who gets the keys";
        problems.invalid(&at_method.at("qemuGuestAgent.users"), message);
    }
    check_source(field, keys.source.secret.is_some(), problems);
    let ways = [method.no_cloud.is_some(), method.config_drive.is_some(), method.qemu_guest_agent.is_some()];
    if ways.into_iter().filter(|set| *set).count() != 1 {
        problems.invalid(&at_method, "set exactly one of noCloud, configDrive and qemuGuestAgent");
    }
}

fn check_passwords(field: &Path<'_>, passwords: &UserPassword, problems: &mut Problems) {
    check_source(field, passwords.source.secret.is_some(), problems);
    if passwords.propagation_method.qemu_guest_agent.is_none() {
        problems.invalid(&field.at("propagationMethod"), "set qemuGuestAgent, the only way for passwords");
    }
}

fn check_source(field: &Path<'_>, given: bool, problems: &mut Problems) {
    if !given {
        problems.invalid(&field.at("source"), "set secret, the only source there is");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::run;
    use crate::testing::World;

    #[test]
    fn one_kind_one_source_and_one_way() {
        let with = |credential: Value| {
            json!({
                "accessCredentials": [credential],
                "volumes": [{ "name": "seed", "cloudInitNoCloud": { "userData": "x" } }],
            })
        };
        let source = json!({ "secret": { "secretName": "keys" } });
        let keys =
            |method: Value| json!({ "sshPublicKey": { "source": source, "propagationMethod": method } });
        let password = |source: Value, method: Value| json!({ "userPassword": { "source": source, "propagationMethod": method } });
        let agent = json!({ "qemuGuestAgent": {} });
        let at = "spec.accessCredentials[0]";
        let method = "spec.accessCredentials[0].sshPublicKey.propagationMethod";
        run(
            &World::default(),
            &[
                ("no cloud", with(keys(json!({ "noCloud": {} }))), &[]),
                ("no config drive", with(keys(json!({ "configDrive": {} }))), &[method]),
                (
                    "config drive",
                    json!({
                        "accessCredentials": [keys(json!({ "configDrive": {} }))],
                        "volumes": [{ "name": "seed", "cloudInitConfigDrive": { "userData": "x" } }],
                    }),
                    &[],
                ),
                ("no volume", json!({ "accessCredentials": [keys(json!({ "noCloud": {} }))] }), &[method]),
                ("agent", with(keys(json!({ "qemuGuestAgent": { "users": ["fedora"] } }))), &[]),
                (
                    "agent without users",
                    with(keys(json!({ "qemuGuestAgent": { "users": [] } }))),
                    &["spec.accessCredentials[0].sshPublicKey.propagationMethod.qemuGuestAgent.users"],
                ),
                ("no way", with(keys(json!({}))), &[method]),
                (
                    "two ways",
                    with(keys(json!({ "noCloud": {}, "qemuGuestAgent": { "users": ["a"] } }))),
                    &[method],
                ),
                (
                    "no source",
                    with(json!({ "sshPublicKey": { "source": {}, "propagationMethod": { "noCloud": {} } } })),
                    &["spec.accessCredentials[0].sshPublicKey.source"],
                ),
                ("password", with(password(source.clone(), agent.clone())), &[]),
                (
                    "password without source",
                    with(password(json!({}), agent.clone())),
                    &["spec.accessCredentials[0].userPassword.source"],
                ),
                (
                    "password without way",
                    with(password(source.clone(), json!({}))),
                    &["spec.accessCredentials[0].userPassword.propagationMethod"],
                ),
                ("nothing", with(json!({})), &[at]),
                (
                    "both",
                    with(json!({
                        "sshPublicKey": { "source": source, "propagationMethod": { "noCloud": {} } },
                        "userPassword": { "source": source, "propagationMethod": agent },
                    })),
                    &[at],
                ),
            ],
        );
    }
}
