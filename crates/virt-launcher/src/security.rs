//! Guests that are protected from their host: what their owners ask before they trust one.

use kubevirt_api::vmi::attestation::{SevMeasurementInfo, SevPlatformInfo, SevSecretOptions};
use kubevirt_domain::Domain;
use kubevirt_domain::domain::firmware::Firmware;
use kubevirt_domain::domain::security::LaunchSecurity;
use kubevirt_qemu::qmp::{NoArguments, QmpError};
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use crate::error::CommandError;
use crate::launcher::Launcher;

/// What QEMU tells of an SEV guest.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct SevGuest {
    api_major: u32,
    api_minor: u32,
    build_id: u32,
    policy: u32,
}

impl Launcher {
    /// Who the host is, as far as SEV is concerned.
    pub async fn sev_info(&self) -> Result<SevPlatformInfo, CommandError> {
        let told = self.running()?.machine.sev().await.map_err(no_sev)?;
        Ok(SevPlatformInfo { pdh: told.pdh, cert_chain: told.cert_chain })
    }

    /// What was loaded into the guest, before it runs.
    pub async fn launch_measurement(&self) -> Result<SevMeasurementInfo, CommandError> {
        let running = self.running()?;
        let domain = running.domain();
        let code = sev_firmware(&domain)?;
        let machine = &running.machine;
        let guest: SevGuest = machine.qmp().call("query-sev", NoArguments {}).await?;
        let measurement = machine.sev_measurement().await?;
        let bytes = tokio::fs::read(code).await;
        let bytes = bytes.map_err(CommandError::io(format!("cannot read the firmware {code}")))?;
        Ok(SevMeasurementInfo {
            measurement,
            api_major: guest.api_major,
            api_minor: guest.api_minor,
            build_id: guest.build_id,
            policy: guest.policy,
            loader_sha: sha256(&bytes),
        })
    }

    /// Gives the guest its owner's secret, before it runs.
    pub async fn inject_launch_secret(&self, options: &[u8]) -> Result<(), CommandError> {
        let options = secret(options)?;
        let running = self.running()?;
        sev_firmware(&running.domain())?;
        Ok(running.machine.inject_sev_secret(&options.header, &options.secret).await?)
    }
}

fn secret(json: &[u8]) -> Result<SevSecretOptions, CommandError> {
    let options: SevSecretOptions = serde_json::from_slice(json)
        .map_err(|error| CommandError::Refused(format!("the secret cannot be read: {error}")))?;
    for (field, value) in [("header", &options.header), ("secret", &options.secret)] {
        if value.is_empty() {
            return Err(CommandError::Refused(format!("the field {field} is required")));
        }
    }
    Ok(options)
}

/// The firmware of an SEV guest; an error for any other guest.
fn sev_firmware(domain: &Domain) -> Result<&str, CommandError> {
    if !matches!(domain.launch_security, Some(LaunchSecurity::Sev { .. })) {
        return Err(CommandError::Refused(
            "the virtual machine is not protected by AMD SEV (spec.domain.launchSecurity.sev)".into(),
        ));
    }
    match &domain.firmware {
        Firmware::Flash { code: path, .. } | Firmware::Rom { path } => Ok(path),
        Firmware::Builtin { .. } => {
            Err(CommandError::Refused("the virtual machine has no UEFI firmware to measure".into()))
        }
    }
}

fn no_sev(error: QmpError) -> CommandError {
    match error {
        QmpError::Refused { desc, .. } => {
            CommandError::Unsupported(format!("this host does not offer AMD SEV: {desc}"))
        }
        error => error.into(),
    }
}

fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_needs_both_its_parts() {
        assert_eq!(secret(br#"{"header":"aGk=","secret":"aG8="}"#).unwrap().secret, "aG8=");
        for (json, word) in [("{}", "header"), (r#"{"header":"a"}"#, "secret"), ("[", "cannot be read")] {
            assert!(secret(json.as_bytes()).unwrap_err().to_string().contains(word), "{json}");
        }
    }

    #[test]
    fn the_digest_is_written_in_hexadecimal() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), empty);
    }
}
