//! What cloud-init finds in the guest: a user, a password, keys, or data as it was given.

use kubevirt_api::vmi::volumes::{CloudInitConfigDriveSource, CloudInitNoCloudSource, Volume};

use super::Arguments;
use super::build::Draft;
use crate::commands::create::params::FlagError;

const FLAG: &str = "cloud-init";
const VOLUME: &str = "cloudinitdisk";
const HEADER: &str = "#cloud-config";

/// The kinds of disk that cloud-init reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    NoCloud,
    ConfigDrive,
    None,
}

impl Kind {
    const ALL: [Self; 3] = [Self::NoCloud, Self::ConfigDrive, Self::None];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::NoCloud => "nocloud",
            Self::ConfigDrive => "configdrive",
            Self::None => "none",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word().eq_ignore_ascii_case(text))
    }
}

/// What is wanted of cloud-init; credentials that go through it add to what flags say.
pub(super) struct Wishes {
    kind: Option<String>,
    manage_ssh: Option<bool>,
}

impl Wishes {
    pub(super) fn of(arguments: &Arguments) -> Self {
        Self { kind: arguments.cloud_init.clone(), manage_ssh: arguments.ga_manage_ssh }
    }

    /// The guest agent may write keys, unless the user said something else.
    pub(super) fn let_agent_manage_ssh(&mut self) {
        self.manage_ssh.get_or_insert(true);
    }

    /// There must be a disk of this kind; the error is the kind that was asked for instead.
    pub(super) fn need(&mut self, kind: Kind) -> Result<(), String> {
        let wanted = self.kind.get_or_insert_with(|| kind.word().to_owned());
        if Kind::parse(wanted) == Some(kind) { Ok(()) } else { Err(wanted.clone()) }
    }
}

/// Adds the disk for cloud-init if any flag asks for something on it.
pub(super) fn add(draft: &mut Draft<'_>, password: Option<&str>) -> Result<(), FlagError> {
    let arguments = draft.arguments;
    let contents = arguments.password_file.is_some()
        || !arguments.ssh_key.is_empty()
        || draft.cloud_init.manage_ssh.is_some()
        || arguments.cloud_init_user_data.is_some()
        || arguments.cloud_init_network_data.is_some();
    if !contents && arguments.user.is_none() && draft.cloud_init.kind.is_none() {
        return Ok(());
    }
    let wanted = draft.cloud_init.kind.as_deref().unwrap_or("nocloud");
    let kind = Kind::parse(wanted).ok_or_else(|| {
        let known = Kind::ALL.map(Kind::word).join(", ");
        let problem =
            format!("invalid cloud-init data source type \"{wanted}\", supported values are: {known}");
        FlagError::new(FLAG, problem)
    })?;
    if kind == Kind::None {
        if contents {
            draft.warnings.push(
                "WARNING: --cloud-init: was set to none, not creating a data source although other cloud-init options \
                 were set"
                    .into(),
            );
        }
        return Ok(());
    }
    if arguments.password_file.is_some() {
        draft.warnings.push(
            "WARNING: --password-file: The password is stored in cleartext in the VM definition!".into(),
        );
    }
    let given = draft.cloud_init.kind.is_some();
    match volume(draft, kind, password) {
        // A disk with nothing on it is only made for who asks for it.
        None if !given => Ok(()),
        volume => draft.add_volume(
            FLAG,
            volume.unwrap_or_else(|| disk(kind, Some(HEADER.into()), None, None)),
            None,
        ),
    }
}

/// The disk, unless there is nothing to put on it.
fn volume(draft: &Draft<'_>, kind: Kind, password: Option<&str>) -> Option<Volume> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let network = given(&draft.arguments.cloud_init_network_data);
    if let Some(user_data) = given(&draft.arguments.cloud_init_user_data) {
        return Some(disk(kind, None, Some(user_data), network));
    }
    let user_data = user_data(draft, password);
    if user_data == HEADER && network.is_none() {
        return None;
    }
    Some(disk(kind, Some(user_data), None, network))
}

fn disk(
    kind: Kind,
    user_data: Option<String>,
    user_data_base64: Option<String>,
    network_data_base64: Option<String>,
) -> Volume {
    let name = VOLUME.to_owned();
    if kind == Kind::ConfigDrive {
        let source = CloudInitConfigDriveSource {
            user_data,
            user_data_base64,
            network_data_base64,
            ..Default::default()
        };
        return Volume { name, cloud_init_config_drive: Some(source), ..Default::default() };
    }
    let source =
        CloudInitNoCloudSource { user_data, user_data_base64, network_data_base64, ..Default::default() };
    Volume { name, cloud_init_no_cloud: Some(source), ..Default::default() }
}

fn user_data(draft: &Draft<'_>, password: Option<&str>) -> String {
    let mut text = HEADER.to_owned();
    if let Some(user) = draft.arguments.user.as_deref().filter(|user| !user.is_empty()) {
        text.push_str(&format!("\nuser: {}", scalar(user)));
    }
    if let Some(password) = password.map(str::trim).filter(|password| !password.is_empty()) {
        text.push_str(&format!("\npassword: {}\nchpasswd: {{ expire: False }}", scalar(password)));
    }
    let keys: Vec<_> = draft.arguments.ssh_key.iter().filter(|key| !key.is_empty()).collect();
    if !keys.is_empty() {
        text.push_str("\nssh_authorized_keys:");
    }
    for key in keys {
        text.push_str(&format!("\n  - {}", scalar(key.trim())));
    }
    if draft.cloud_init.manage_ssh == Some(true) {
        text.push_str("\nruncmd:\n  - [ setsebool, -P, 'virt_qemu_ga_manage_ssh', 'on' ]");
    }
    text
}

/// The text as YAML, in quotes where YAML would take it for something else than that text.
fn scalar(text: &str) -> String {
    let reads_back = format!("key: {text}");
    let plain = !text.contains(char::is_control)
        && serde_saphyr::from_str::<serde_json::Value>(&reads_back).is_ok_and(|value| value["key"] == text)
        && !looks_typed(text);
    if plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

/// Whether an older reader of YAML, as cloud-init's is, sees a number, a date or a truth value.
fn looks_typed(text: &str) -> bool {
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"];
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
        || text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
}
