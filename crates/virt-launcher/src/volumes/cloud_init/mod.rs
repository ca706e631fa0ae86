//! Seeds for cloud-init: ISO images with user data, network data and facts about the machine.

mod devices;
mod metadata;
mod seed;

use std::path::PathBuf;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use kubevirt_api::vmi::access_credentials::AccessCredential;
use kubevirt_api::vmi::volumes::{CloudInitConfigDriveSource, CloudInitNoCloudSource, Volume};

pub use devices::{Device, tagged_devices};
pub use metadata::Machine;
pub use seed::{Seed, SeedData};

use super::Request;
use super::error::Problem;
use super::plan::check_name;

/// Which of cloud-init's data sources a seed is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataSource {
    /// Files at the root, label `cidata`.
    NoCloud,
    /// OpenStack's files, label `config-2`.
    ConfigDrive,
}

/// What a seed is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedPlan {
    /// The ISO image.
    pub path: PathBuf,
    /// Which kind of seed.
    pub source: DataSource,
    /// Data for the user's part.
    pub user: Part,
    /// Data for the network.
    pub network: Part,
    /// What it tells about the machine.
    pub machine: Machine,
    /// Mounted folder of the volume's Secrets.
    pub secrets: PathBuf,
    /// Mounted folders of Secrets with SSH keys.
    pub keys: Vec<PathBuf>,
}

/// Where data comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The VMI has it, or nobody.
    Inline(Vec<u8>),
    /// A Secret has it.
    Secret,
}

/// The fields that both kinds of seed have.
struct Fields<'a> {
    user: (bool, Option<&'a String>, Option<&'a String>),
    network: (bool, Option<&'a String>, Option<&'a String>),
}

macro_rules! fields {
    ($source:expr) => {
        Fields {
            user: (
                $source.secret_ref.is_some(),
                $source.user_data.as_ref(),
                $source.user_data_base64.as_ref(),
            ),
            network: (
                $source.network_data_secret_ref.is_some(),
                $source.network_data.as_ref(),
                $source.network_data_base64.as_ref(),
            ),
        }
    };
}

impl<'a> From<&'a CloudInitNoCloudSource> for Fields<'a> {
    fn from(source: &'a CloudInitNoCloudSource) -> Self {
        fields!(source)
    }
}

impl<'a> From<&'a CloudInitConfigDriveSource> for Fields<'a> {
    fn from(source: &'a CloudInitConfigDriveSource) -> Self {
        fields!(source)
    }
}

/// What the seed of a volume is made of, if it is one.
pub fn plan(request: &Request<'_>, volume: &Volume) -> Result<Option<SeedPlan>, Problem> {
    let (source, fields) = match (&volume.cloud_init_no_cloud, &volume.cloud_init_config_drive) {
        (Some(source), _) => (DataSource::NoCloud, Fields::from(source)),
        (_, Some(source)) => (DataSource::ConfigDrive, Fields::from(source)),
        _ => return Ok(None),
    };
    let machine = Machine::of(request.vmi);
    let config_drive = source == DataSource::ConfigDrive;
    let plan = SeedPlan {
        path: request.layout.cloud_init(&machine.namespace, &machine.name, config_drive).into(),
        source,
        user: part("userDataBase64", fields.user)?,
        network: part("networkDataBase64", fields.network)?,
        machine,
        secrets: request.layout.secret(&volume.name).into(),
        keys: keys(request, source)?,
    };
    let nothing = Part::Inline(Vec::new());
    if plan.user == nothing && plan.network == nothing {
        return Err(Problem::NoData);
    }
    Ok(Some(plan))
}

fn part(
    field: &'static str,
    (secret, plain, encoded): (bool, Option<&String>, Option<&String>),
) -> Result<Part, Problem> {
    if secret {
        return Ok(Part::Secret);
    }
    match (plain.filter(|text| !text.is_empty()), encoded) {
        (Some(text), _) => Ok(Part::Inline(text.clone().into_bytes())),
        (None, Some(text)) => decode(field, text).map(Part::Inline),
        (None, None) => Ok(Part::Inline(Vec::new())),
    }
}

fn decode(field: &'static str, text: &str) -> Result<Vec<u8>, Problem> {
    // Tools that encode break lines, and the break does not count.
    let text: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(&alphabet::STANDARD, config)
        .decode(text)
        .map_err(|error| Problem::Base64 { field, reason: error.to_string() })
}

/// Mounted folders of the Secrets whose SSH keys go into this kind of seed.
fn keys(request: &Request<'_>, source: DataSource) -> Result<Vec<PathBuf>, Problem> {
    let secret = |credential: &AccessCredential| {
        let key = credential.ssh_public_key.as_ref()?;
        let here = match source {
            DataSource::NoCloud => key.propagation_method.no_cloud.is_some(),
            DataSource::ConfigDrive => key.propagation_method.config_drive.is_some(),
        };
        let name = &key.source.secret.as_ref()?.secret_name;
        (here && !name.is_empty()).then(|| name.clone())
    };
    let credentials = request.vmi.spec.access_credentials.iter().flatten();
    credentials
        .filter_map(secret)
        .map(|name| {
            check_name(&name)?;
            Ok(request.layout.access_credential(&name).into())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_may_have_line_breaks_but_no_faults() {
        for (text, expected) in [("aGVsbG8=", "hello"), ("aGVs\r\nbG8=\n", "hello"), ("", "")] {
            assert_eq!(decode("f", text).unwrap(), expected.as_bytes(), "{text:?}");
        }
        for text in ["aGVsbG8", "a", "*", "aGVsbG8=x", "aGVs bG8="] {
            assert!(matches!(decode("f", text), Err(Problem::Base64 { field: "f", .. })), "{text:?}");
        }
    }
}
