//! A seed with its data, and its ISO image.

use std::collections::BTreeMap;
use std::path::Path;

use super::{DataSource, Device, Part, SeedPlan};
use crate::volumes::carry_out::Note;
use crate::volumes::error::Problem;
use crate::volumes::isos;
use crate::volumes::source::Source;

/// A seed for cloud-init.
#[derive(Clone, Debug)]
pub struct Seed {
    plan: SeedPlan,
    /// What it holds; hooks may change it before it is written again.
    pub data: SeedData,
}

/// What a seed holds besides facts about the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedData {
    /// User data.
    pub user: Vec<u8>,
    /// Network data.
    pub network: Vec<u8>,
    /// SSH keys, by number.
    pub keys: BTreeMap<String, String>,
}

impl Seed {
    /// Takes the data together that a plan names.
    pub(crate) fn read(volume: &str, plan: &SeedPlan, notes: &mut Vec<Note>) -> Result<Self, Problem> {
        let parts = [
            ("secretRef", ["userdata", "userData"], &plan.user),
            ("networkDataSecretRef", ["networkdata", "networkData"], &plan.network),
        ];
        let mut data = SeedData::default();
        let mut missing = Vec::new();
        for ((field, names, part), bytes) in parts.into_iter().zip([&mut data.user, &mut data.network]) {
            match part {
                Part::Inline(inline) => bytes.clone_from(inline),
                Part::Secret => match secret(&plan.secrets, names)? {
                    Some(found) => *bytes = found,
                    None => missing.push((field, names[0])),
                },
            }
        }
        if data.user.is_empty() && data.network.is_empty() {
            return Err(missing
                .first()
                .map_or(Problem::NoData, |(field, key)| Problem::SecretKey { field, key }));
        }
        // KubeVirt starts such machines, so we do too.
        notes.extend(missing.into_iter().map(|(_, key)| Note::SecretKey { volume: volume.into(), key }));
        data.keys = keys(plan)?;
        Ok(Self { plan: plan.clone(), data })
    }

    /// Which of cloud-init's data sources it is for.
    pub fn source(&self) -> DataSource {
        self.plan.source
    }

    /// Writes the ISO image, with tagged devices if it is a config drive.
    ///
    /// It was written without devices already; this is for machines that have some, once their addresses are known.
    pub fn write(&self, devices: &[Device]) -> Result<(), Problem> {
        let plan = &self.plan;
        let facts = plan.machine.json(plan.source, &self.data.keys, devices);
        let (label, names) = match plan.source {
            DataSource::NoCloud => ("cidata", ["meta-data", "user-data", "network-config"]),
            DataSource::ConfigDrive => (
                "config-2",
                [
                    "openstack/latest/meta_data.json",
                    "openstack/latest/user_data",
                    "openstack/latest/network_data.json",
                ],
            ),
        };
        let mut files: Vec<(&str, &[u8])> = vec![(names[0], &facts), (names[1], &self.data.user)];
        if !self.data.network.is_empty() {
            files.push((names[2], &self.data.network));
        }
        isos::of_bytes(&plan.path, label, &files)
    }
}

/// The value of the first of some keys of a Secret that is there.
fn secret(folder: &Path, names: [&str; 2]) -> Result<Option<Vec<u8>>, Problem> {
    let source = Source::open(folder)?;
    for name in names {
        if let Some(bytes) = source.read(folder, name)?.filter(|bytes| !bytes.is_empty()) {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// All SSH keys, numbered in the order of Secrets and their keys.
fn keys(plan: &SeedPlan) -> Result<BTreeMap<String, String>, Problem> {
    let mut keys = BTreeMap::new();
    for folder in &plan.keys {
        let source = Source::open(folder)?;
        for file in source.files(folder)?.iter().filter(|file| !file.path.contains('/')) {
            let Some(bytes) = source.read(folder, &file.path)?.filter(|bytes| !bytes.is_empty()) else {
                continue;
            };
            keys.insert(keys.len().to_string(), String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    Ok(keys)
}
