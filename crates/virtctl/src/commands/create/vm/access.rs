//! Secrets with keys and passwords that are put into the guest: `--access-cred`.

use kubevirt_api::vmi::access_credentials::{
    AccessCredential, CredentialSecret, SshKeyByConfigDrive, SshKeyByGuestAgent, SshKeyByNoCloud,
    SshPublicKey, SshPublicKeyPropagation, SshPublicKeySource, UserPassword, UserPasswordByGuestAgent,
    UserPasswordPropagation, UserPasswordSource,
};

use super::build::Draft;
use super::cloud_init::Kind;
use super::volumes::local;
use crate::commands::create::params::{FlagError, Params};

const FLAG: &str = "access-cred";
const NO_USER: &str = "user cannot be specified with selected access credential type and method";

/// The parameters of one credential.
struct Wanted {
    kind: Option<String>,
    secret: String,
    method: Option<String>,
    user: Option<String>,
}

impl Wanted {
    fn parse(text: &str) -> Result<Self, FlagError> {
        let mut params = Params::parse(FLAG, text)?;
        let (kind, source) = (params.text("type"), params.text("src"));
        let (method, user) = (params.text("method"), params.text("user"));
        params.finish()?;
        let source = source.ok_or_else(|| params.problem("src must be specified"))?;
        Ok(Self { kind, secret: local(FLAG, "secret", &source)?, method, user })
    }
}

/// Adds the credentials; keys through cloud-init or the agent also decide what cloud-init does.
pub(super) fn add(draft: &mut Draft<'_>) -> Result<(), FlagError> {
    for text in &draft.arguments.access_cred {
        let wanted = Wanted::parse(text)?;
        let credential = match lower(&wanted.kind).as_deref() {
            None | Some("ssh") => ssh(draft, wanted)?,
            Some("password") => password(wanted)?,
            Some(_) => {
                let kind = wanted.kind.unwrap_or_default();
                return Err(refused(format!(
                    "invalid access credential type \"{kind}\", supported values are: ssh, password"
                )));
            }
        };
        draft.instance.access_credentials.get_or_insert_default().push(credential);
    }
    Ok(())
}

fn ssh(draft: &mut Draft<'_>, wanted: Wanted) -> Result<AccessCredential, FlagError> {
    let mut propagation_method = SshPublicKeyPropagation::default();
    match lower(&wanted.method).as_deref() {
        None | Some("ga") => {
            let user = wanted.user.or_else(|| draft.arguments.user.clone()).filter(|user| !user.is_empty());
            let user = user.ok_or_else(|| {
                refused(
                    "user must be specified with access credential ssh method ga (\"--user\" flag or param \"user\")",
                )
            })?;
            draft.cloud_init.let_agent_manage_ssh();
            propagation_method.qemu_guest_agent = Some(SshKeyByGuestAgent { users: vec![user] });
        }
        Some("nocloud") => {
            through_cloud_init(draft, &wanted, Kind::NoCloud)?;
            propagation_method.no_cloud = Some(SshKeyByNoCloud {});
        }
        Some("configdrive") => {
            through_cloud_init(draft, &wanted, Kind::ConfigDrive)?;
            propagation_method.config_drive = Some(SshKeyByConfigDrive {});
        }
        Some(_) => {
            let method = wanted.method.unwrap_or_default();
            return Err(refused(format!(
                "invalid access credentials ssh method \"{method}\", supported values are: ga, nocloud, configdrive"
            )));
        }
    }
    let source = SshPublicKeySource { secret: Some(CredentialSecret { secret_name: wanted.secret }) };
    let key = SshPublicKey { source, propagation_method };
    Ok(AccessCredential { ssh_public_key: Some(key), user_password: None })
}

/// Makes sure that cloud-init has a disk of the kind that carries the keys.
fn through_cloud_init(draft: &mut Draft<'_>, wanted: &Wanted, kind: Kind) -> Result<(), FlagError> {
    if wanted.user.is_some() {
        return Err(refused(NO_USER));
    }
    draft.cloud_init.need(kind).map_err(|other| {
        let kind = kind.word();
        refused(format!("method param and value passed to --cloud-init have to match: {kind} vs {other}"))
    })
}

fn password(wanted: Wanted) -> Result<AccessCredential, FlagError> {
    if let Some(method) = wanted.method.as_deref().filter(|method| !method.eq_ignore_ascii_case("ga")) {
        return Err(refused(format!(
            "invalid access credentials password method \"{method}\", supported values are: ga"
        )));
    }
    if wanted.user.is_some() {
        return Err(refused(NO_USER));
    }
    let source = UserPasswordSource { secret: Some(CredentialSecret { secret_name: wanted.secret }) };
    let propagation_method = UserPasswordPropagation { qemu_guest_agent: Some(UserPasswordByGuestAgent {}) };
    Ok(AccessCredential {
        user_password: Some(UserPassword { source, propagation_method }),
        ssh_public_key: None,
    })
}

fn lower(text: &Option<String>) -> Option<String> {
    text.as_deref().map(str::to_ascii_lowercase)
}

fn refused(problem: impl Into<String>) -> FlagError {
    FlagError::new(FLAG, problem)
}
