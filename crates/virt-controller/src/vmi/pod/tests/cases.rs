//! The cases of `testdata/pods`: a VMI, and what is around it, in one file each.

use std::fs;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kubevirt_admission::{ClusterConfig, mutate};
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};

use super::super::{Claim, NoPod, Purpose, Surroundings, launcher};

/// The image of the launchers.
pub const IMAGE: &str = "registry/virt-launcher:test";

/// One case.
pub struct Case {
    /// Name of its file.
    pub name: String,
    /// The VMI, with the defaults of admission.
    pub vmi: VirtualMachineInstance,
    config: ClusterConfig,
    claims: Vec<PersistentVolumeClaim>,
    around: Value,
}

/// Folder of the cases.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/pods")
}

/// All cases, by name.
pub fn all() -> Vec<Case> {
    let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "yaml")).collect();
    files.sort();
    assert!(files.len() > 20, "cases are missing");
    files.iter().map(|file| Case::read(file)).collect()
}

impl Case {
    /// Reads the case of a file: a VMI, claims, a KubeVirt, and further surroundings.
    fn read(file: &std::path::Path) -> Self {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(file).unwrap())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let of = |kind: &str| documents.iter().filter(|it| it["kind"] == kind).cloned().collect::<Vec<_>>();
        let config = of("KubeVirt").into_iter().next().unwrap_or_else(|| json!({}));
        let config = ClusterConfig::of(&serde_json::from_value(config).unwrap());
        let mut vmi = of("VirtualMachineInstance").remove(0);
        vmi["metadata"]["namespace"] = "default".into();
        vmi["metadata"]["uid"] = "ad002f99-0cb6-4989-8b96-908c2c933bf7".into();
        let vmi = serde_json::from_value(vmi).unwrap_or_else(|error| panic!("{name}: {error}"));
        let claims = of("PersistentVolumeClaim");
        let claims = claims.into_iter().map(|claim| serde_json::from_value(claim).unwrap()).collect();
        let around = of("Surroundings").into_iter().next().unwrap_or_else(|| json!({}));
        Self { name, vmi: defaulted(vmi, &config), config, claims, around }
    }

    /// What is around the VMI.
    pub fn surroundings(&self) -> Surroundings<'_> {
        let mut around = Surroundings::new(&self.config, IMAGE);
        for claim in &self.claims {
            around.claims.insert(claim.metadata.name.clone().unwrap(), Claim::from(claim));
        }
        let read = |name: &str| self.around[name].clone();
        let is = |name: &str| self.around[name] == true;
        let map = |name: &str| serde_json::from_value(read(name)).unwrap_or_default();
        around.state_claim = read("stateClaim").as_str().map(str::to_owned);
        around.image_volumes = is("imageVolumes");
        around.pull_secrets = serde_json::from_value(read("pullSecrets")).unwrap_or_default();
        around.images = map("images");
        around.network_resources = map("networkResources");
        around.namespace.labels = map("namespaceLabels");
        around.namespace.quota_of_cpu_limits = is("quotaOfCpuLimits");
        around.namespace.quota_of_memory_limits = is("quotaOfMemoryLimits");
        around.purpose = if is("provision") { Purpose::Provision } else { Purpose::Run };
        around
    }

    /// The pod of the case.
    pub fn pod(&self) -> Result<Pod, NoPod> {
        launcher(&self.vmi, &self.surroundings())
    }
}

/// A VMI with the defaults of admission, all with the same random numbers.
pub fn defaulted(mut vmi: VirtualMachineInstance, config: &ClusterConfig) -> VirtualMachineInstance {
    let status = vmi.status.clone();
    let problems = mutate::vmi::default_instance(config, &uuid::Uuid::nil, &mut vmi);
    assert!(problems.is_empty(), "{problems:?}");
    vmi.status = status;
    vmi
}
