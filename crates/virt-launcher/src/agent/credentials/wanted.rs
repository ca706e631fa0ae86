//! Which keys and passwords the guest's users should have.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::access_credentials::AccessCredential;

/// Files of a mounted Secret: names and contents.
pub(super) type Files = BTreeMap<String, String>;

/// What the guest's users should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Keys by user.
    pub(super) keys: BTreeMap<String, Vec<String>>,
    /// Passwords by user.
    pub(super) passwords: BTreeMap<String, String>,
}

/// What a credential is, if the agent brings it: the Secret, and the users if it holds keys.
fn by_agent(credential: &AccessCredential) -> Option<(&str, Option<&[String]>)> {
    if let Some(keys) = &credential.ssh_public_key
        && let Some(agent) = &keys.propagation_method.qemu_guest_agent
    {
        return Some((&keys.source.secret.as_ref()?.secret_name, Some(&agent.users)));
    }
    let passwords = credential.user_password.as_ref()?;
    passwords.propagation_method.qemu_guest_agent.as_ref()?;
    Some((&passwords.source.secret.as_ref()?.secret_name, None))
}

fn credentials(vmi: &VirtualMachineInstance) -> impl Iterator<Item = (&str, Option<&[String]>)> {
    vmi.spec.access_credentials.iter().flatten().filter_map(by_agent)
}

/// Names of the Secrets that the agent brings.
pub(super) fn secrets(vmi: &VirtualMachineInstance) -> Vec<&str> {
    let mut names: Vec<&str> = credentials(vmi).map(|(secret, _)| secret).collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl Wanted {
    /// Reads what is wanted, and tells which Secrets cannot be read.
    ///
    /// Users of a Secret that cannot be read keep their keys: they would be locked out otherwise.
    pub(super) fn read(
        vmi: &VirtualMachineInstance,
        read: impl Fn(&str) -> io::Result<Files>,
    ) -> (Self, Vec<String>) {
        let (mut wanted, mut failures, mut unknown) = (Self::default(), Vec::new(), Vec::new());
        for (secret, users) in credentials(vmi) {
            match (read(secret), users) {
                (Ok(files), Some(users)) => {
                    for user in users {
                        let keys = wanted.keys.entry(user.clone()).or_default();
                        keys.extend(files.values().flat_map(|text| lines(text)));
                    }
                }
                (Ok(files), None) => wanted.passwords.extend(passwords(files)),
                (Err(error), users) => {
                    failures.push(format!("the secret {secret} cannot be read: {error}"));
                    unknown.extend(users.into_iter().flatten());
                }
            }
        }
        wanted.keys.retain(|user, _| !unknown.contains(&user));
        (wanted, failures)
    }
}

fn lines(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned)
}

fn passwords(files: Files) -> impl Iterator<Item = (String, String)> {
    let trimmed = files.into_iter().map(|(user, text)| (user, text.trim().to_owned()));
    trimmed.filter(|(_, password)| !password.is_empty())
}

/// The files of a mounted Secret. What begins with two dots is how the kubelet swaps all of them at once.
pub(super) fn read_folder(folder: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("..") && path.is_file() {
            let content = std::fs::read(&path)?;
            files.insert(name, String::from_utf8_lossy(&content).into_owned());
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn vmi() -> VirtualMachineInstance {
        let keys = |secret: &str, method: serde_json::Value| {
            json!({ "sshPublicKey": {
                "source": { "secret": { "secretName": secret } }, "propagationMethod": method,
            }})
        };
        let vmi = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": { "name": "web" },
            "spec": { "domain": { "devices": {} }, "accessCredentials": [
                keys("ours", json!({ "qemuGuestAgent": { "users": ["ann", "bob"] } })),
                keys("theirs", json!({ "qemuGuestAgent": { "users": ["bob", "cid"] } })),
                keys("boot", json!({ "noCloud": {} })),
                { "userPassword": { "source": { "secret": { "secretName": "words" } },
                                    "propagationMethod": { "qemuGuestAgent": {} } } },
            ]},
        });
        serde_json::from_value(vmi).unwrap()
    }

    fn files(list: &[(&str, &str)]) -> Files {
        list.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    fn secret(name: &str) -> io::Result<Files> {
        match name {
            "ours" => Ok(files(&[("a", "key-1\n\n  key-2  \n"), ("b", "key-3")])),
            "theirs" => Ok(files(&[("k", "key-4\n")])),
            "words" => Ok(files(&[("ann", " hush \n"), ("bob", "\n")])),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    #[test]
    fn each_user_gets_the_keys_of_all_secrets() {
        assert_eq!(secrets(&vmi()), ["ours", "theirs", "words"]);
        let (wanted, failures) = Wanted::read(&vmi(), secret);
        assert!(failures.is_empty());
        assert_eq!(wanted.keys["ann"], ["key-1", "key-2", "key-3"]);
        assert_eq!(wanted.keys["bob"], ["key-1", "key-2", "key-3", "key-4"]);
        assert_eq!(wanted.keys["cid"], ["key-4"]);
        assert_eq!(wanted.passwords, files(&[("ann", "hush")]));
    }

    #[test]
    fn nobody_is_locked_out_by_a_secret_that_is_missing() {
        let missing = |name: &str| if name == "theirs" { secret("none") } else { secret(name) };
        let (wanted, failures) = Wanted::read(&vmi(), missing);
        assert_eq!(wanted.keys.keys().collect::<Vec<_>>(), ["ann"]);
        assert!(failures.len() == 1 && failures[0].contains("theirs"), "{failures:?}");
    }
}
