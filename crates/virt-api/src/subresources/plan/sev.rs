//! Giving an instance the owner's side of its SEV session, before the guest starts.

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;

use super::ready::{no_attestation, wants_attestation};
use super::{name_of, phase};
use crate::subresources::change::{Change, Target};
use crate::subresources::failure::{About, Failure};
use crate::subresources::options::SevSession;
use crate::subresources::seen::Seen;

const PATH: &str = "/spec/domain/launchSecurity/sev";

/// Whether the options are whole.
pub fn check(options: &SevSession) -> Result<(&str, &str), Failure> {
    let given = |value: &Option<String>| value.as_deref().is_some_and(|value| !value.is_empty());
    match (given(&options.session), given(&options.dh_cert)) {
        (false, _) => Err(Failure::bad_request("Session blob is required")),
        (_, false) => Err(Failure::bad_request("DH cert is required")),
        _ => Ok((
            options.session.as_deref().unwrap_or_default(),
            options.dh_cert.as_deref().unwrap_or_default(),
        )),
    }
}

/// Writes the session down.
pub fn set_up(vmi: &Seen<VirtualMachineInstance>, options: &SevSession) -> Result<Change, Failure> {
    let (session, certificate) = check(options)?;
    let conflict = |why: &str| Failure::conflict(About::Instance, name_of(&**vmi), why);
    if phase(vmi) != Some(&VmiPhase::Scheduled) {
        return Err(conflict("VMI is not in Scheduled phase"));
    }
    if !wants_attestation(vmi) {
        return Err(no_attestation(vmi));
    }
    let mut sev = vmi.at(PATH).clone();
    if ["session", "dhCert"].iter().any(|field| sev[field].as_str().is_some_and(|text| !text.is_empty())) {
        return Err(conflict("Session already defined"));
    }
    sev["session"] = session.into();
    sev["dhCert"] = certificate.into();
    Ok(Change::of(Target::Instance).unchanged(vmi, PATH).put(vmi, PATH, sev))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::seen;
    use super::*;

    fn vmi(phase: &str, sev: Value) -> Seen<VirtualMachineInstance> {
        let domain = json!({ "devices": {}, "launchSecurity": { "sev": sev } });
        seen(json!({ "spec": { "domain": domain }, "status": { "phase": phase } }))
    }

    fn options(session: &str, certificate: &str) -> SevSession {
        let (session, dh_cert) = (Some(session.into()), Some(certificate.into()));
        SevSession { session, dh_cert, ..SevSession::default() }
    }

    #[test]
    fn a_session_is_given_once_and_in_time() {
        let wanted = json!({ "attestation": {} });
        let change = set_up(&vmi("Scheduled", wanted.clone()), &options("s", "c")).unwrap();
        assert_eq!(change.operations[0]["value"], wanted);
        assert_eq!(
            change.operations[1]["value"],
            json!({ "attestation": {}, "session": "s", "dhCert": "c" })
        );
        let cases = [
            ("Scheduled", wanted.clone(), options("", "c"), 400),
            ("Scheduled", wanted.clone(), options("s", ""), 400),
            ("Running", wanted, options("s", "c"), 409),
            ("Scheduled", json!({}), options("s", "c"), 409),
            ("Scheduled", json!({ "attestation": {}, "session": "x" }), options("s", "c"), 409),
        ];
        for (phase, sev, options, code) in cases {
            assert_eq!(set_up(&vmi(phase, sev), &options).unwrap_err().code, code);
        }
    }
}
