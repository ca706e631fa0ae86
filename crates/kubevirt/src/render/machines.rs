//! From manifests to instances, as admission and the controller would make them.

use anyhow::{Context as _, Result};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kubevirt_admission::instancetype::expand;
use kubevirt_admission::mutate::vmi::{disks, firmware, metadata, network};
use kubevirt_admission::review::{Incoming, Steps, Surroundings, answer};
use kubevirt_admission::{ClusterConfig, KnownObjects, OwnAccounts, Problems};
use kubevirt_api::kubevirt::KubeVirt;
use kubevirt_api::names::{accounts, annotations, finalizers};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};

use super::Arguments;
use crate::documents::{self, Document};

/// The UID of objects that have none yet, since nobody created them.
const UID: &str = "00000000-0000-0000-0000-000000000000";

/// What is known of the cluster.
pub struct Cluster {
    /// What the installation is set to.
    pub config: ClusterConfig,
    /// All objects that were given.
    pub objects: KnownObjects,
}

/// An instance, or what is wrong with its manifest.
type Instance<T> = std::result::Result<T, Vec<String>>;

impl Cluster {
    /// Reads the files, and finds the machines in them.
    pub fn read(arguments: &Arguments) -> Result<(Self, Vec<Document>)> {
        let config = match &arguments.config {
            Some(file) => documents::installation(file, &arguments.namespace)?,
            None => KubeVirt::default(),
        };
        let mut objects = KnownObjects::default();
        let mut machines = Vec::new();
        for file in &arguments.filenames {
            for document in documents::read(file, &arguments.namespace)? {
                if ["VirtualMachine", "VirtualMachineInstance"].contains(&kind(&document.object)) {
                    machines.push(document);
                } else {
                    objects.add(document.object).with_context(|| file.display().to_string())?;
                }
            }
        }
        for file in &arguments.with {
            for document in documents::read(file, &arguments.namespace)? {
                objects.add(document.object).with_context(|| file.display().to_string())?;
            }
        }
        Ok((Self { config: ClusterConfig::of(&config), objects }, machines))
    }

    /// The instance of a manifest, as it is stored.
    pub fn instance(&self, document: &Document) -> Result<Instance<VirtualMachineInstance>> {
        let object = match self.admitted(document.object.clone(), None)? {
            Ok(object) => object,
            Err(problems) => return Ok(Err(problems)),
        };
        if kind(&object) == "VirtualMachineInstance" {
            return Ok(Ok(decode(object, &document.source)?));
        }
        let vm: VirtualMachine = decode(object, &document.source)?;
        let vmi = match self.instance_of(&vm) {
            Ok(vmi) => vmi,
            Err(problems) => return Ok(Err(problems.iter().map(ToString::to_string).collect())),
        };
        let vmi = serde_json::to_value(vmi)?;
        // The controller made it, and may set what users may not.
        match self.admitted(vmi, Some(accounts::CONTROLLER))? {
            Ok(object) => Ok(Ok(decode(object, &document.source)?)),
            Err(problems) => Ok(Err(problems)),
        }
    }

    /// The object with the defaults of admission, if it accepts it.
    fn admitted(&self, mut object: Value, account: Option<&str>) -> Result<Instance<Value>> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let own_accounts = OwnAccounts::of_installation("kubevirt");
        let mut incoming = Incoming::creation(object.clone());
        if let Some(account) = account {
            incoming.request.user.name = format!("system:serviceaccount:kubevirt:{account}");
        }
        let surroundings = Surroundings {
            config: &self.config,
            objects: &self.objects,
            own_accounts: &own_accounts,
            // The same manifest always gives the same result.
            now: Time(jiff::Timestamp::UNIX_EPOCH),
            fresh_uuid: &|| firmware::uuid_by_name(&name),
        };
        let answer = answer(&incoming, &surroundings, Steps::Both);
        if !answer.allowed() {
            let refusal = answer.refusal.iter().map(|refusal| refusal.message.clone());
            let problems = answer.problems.iter().map(ToString::to_string);
            return Ok(Err(refusal.chain(problems).collect()));
        }
        if let Some(patch) = &answer.patch {
            json_patch::patch(&mut object, patch).context("the defaults do not fit the object")?;
        }
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = UID.into();
        }
        Ok(Ok(object))
    }

    /// What the controller sends to be created for a machine.
    fn instance_of(&self, vm: &VirtualMachine) -> Result<VirtualMachineInstance, Problems> {
        let template = vm.spec.template.clone();
        let mut vmi = VirtualMachineInstance::new("", template.spec.unwrap_or_default());
        vmi.metadata = template.metadata.unwrap_or_default();
        vmi.metadata.name.clone_from(&vm.metadata.name);
        vmi.metadata.namespace.clone_from(&vm.metadata.namespace);
        vmi.metadata.owner_references = Some(vec![owner(vm)]);
        let notes = vmi.metadata.annotations.get_or_insert_default();
        notes.insert(annotations::VM_GENERATION.to_owned(), "1".to_owned());
        metadata::add_finalizer(&mut vmi.metadata, finalizers::VM_CONTROLLER);
        disks::add_missing(&mut vmi.spec);
        expand::attach_by_preference(&self.objects, vm, &mut vmi.spec).into_result()?;
        network::add_default(&self.config, &mut vmi.spec).into_result()?;
        expand::into_instance(&self.objects, vm, &mut vmi).into_result()?;
        Ok(vmi)
    }
}

fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

fn owner(vm: &VirtualMachine) -> OwnerReference {
    OwnerReference {
        api_version: "kubevirt.io/v1".to_owned(),
        kind: "VirtualMachine".to_owned(),
        name: vm.metadata.name.clone().unwrap_or_default(),
        uid: vm.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

fn decode<K: serde::de::DeserializeOwned>(mut object: Value, source: &str) -> Result<K> {
    // Stored objects are of this version, whichever they were written in.
    object["apiVersion"] = json!("kubevirt.io/v1");
    serde_json::from_value(object).with_context(|| source.to_owned())
}
