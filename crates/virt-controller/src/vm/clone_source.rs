//! What a DataVolume is cloned from, and whether the machine's account may read it.
//!
//! The importer asks whether the maker of a DataVolume may clone its source. That is us, who may nearly everything, so
//! the question is asked here in the name of the machine's service account.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use kubevirt_api::data_volume::{
    DataVolume, DataVolumeSource, DataVolumeSourcePvc, DataVolumeSourceSnapshot,
};
use kubevirt_api::names::{external, groups};
use kubevirt_api::vm::VirtualMachine;
use serde::Deserialize;
use serde_json::Value;

use super::view;

/// Why a DataVolume cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine's account may not read the source.
    #[error(
        "the service account {account:?} has insufficient permissions in clone source namespace {namespace:?}"
    )]
    Forbidden {
        /// The account.
        account: String,
        /// Where the source is.
        namespace: String,
    },
    /// The source is not there, or cannot be asked for.
    #[error(transparent)]
    Api(#[from] kube::Error),
}

/// Puts the source itself in place of a reference to it, and asks whether the machine may have it.
pub async fn settle(client: &Client, vm: &VirtualMachine, made: &mut DataVolume) -> Result<(), Error> {
    let namespace = vm.metadata.namespace.as_deref().unwrap_or_default();
    if let Some(source) = referred(client, namespace, made).await? {
        made.spec.source_ref = None;
        made.spec.source = Some(source);
    }
    let Some(source) = Cloned::of(made, namespace) else { return Ok(()) };
    if source.namespace == namespace || is_filled_already(made) {
        return Ok(());
    }
    let account = account(vm);
    match may_clone(client, namespace, &account, &source).await? {
        true => Ok(()),
        false => Err(Error::Forbidden { account, namespace: source.namespace }),
    }
}

/// Something that is cloned.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cloned {
    namespace: String,
    name: String,
    snapshot: bool,
}

impl Cloned {
    fn of(made: &DataVolume, own: &str) -> Option<Self> {
        let source = made.spec.source.as_ref()?;
        let (namespace, name, snapshot) = match source {
            DataVolumeSource { pvc: Some(claim), .. } => (&claim.namespace, &claim.name, false),
            DataVolumeSource { snapshot: Some(snapshot), .. } => (&snapshot.namespace, &snapshot.name, true),
            _ => return None,
        };
        let namespace = if namespace.is_empty() { own } else { namespace };
        Some(Self { namespace: namespace.to_owned(), name: name.clone(), snapshot })
    }

    /// The rights of which one set has to be had in full.
    fn rights(&self) -> [Vec<ResourceAttributes>; 2] {
        let right = |group: &str, resource: &str, subresource: Option<&str>| ResourceAttributes {
            namespace: Some(self.namespace.clone()),
            name: Some(self.name.clone()),
            verb: Some("create".to_owned()),
            group: Some(group.to_owned()).filter(|group| !group.is_empty()),
            resource: Some(resource.to_owned()),
            subresource: subresource.map(str::to_owned),
            ..ResourceAttributes::default()
        };
        let explicit = vec![right(groups::CDI, "datavolumes", Some("source"))];
        let mut implicit = vec![right("", "pods", None)];
        if self.snapshot {
            implicit.push(right("", "pvcs", None));
        }
        [explicit, implicit]
    }
}

/// A claim that is there and filled needs no source.
fn is_filled_already(made: &DataVolume) -> bool {
    [external::cdi::PRE_POPULATED, external::cdi::CHECK_STATIC_VOLUME]
        .iter()
        .any(|mark| view::annotation(&made.metadata, mark).is_some())
}

/// The service account of a machine's pods.
fn account(vm: &VirtualMachine) -> String {
    let spec = view::template(vm);
    let own = spec.and_then(|spec| spec.service_account_name.clone());
    let of_volume = view::volumes(vm)
        .iter()
        .find_map(|volume| volume.service_account.as_ref()?.service_account_name.clone());
    let named = [own, of_volume].into_iter().flatten().find(|name| !name.is_empty());
    named.unwrap_or_else(|| "default".to_owned())
}

async fn may_clone(
    client: &Client,
    namespace: &str,
    account: &str,
    source: &Cloned,
) -> Result<bool, kube::Error> {
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    'sets: for rights in source.rights() {
        for right in rights {
            let review =
                SubjectAccessReview { spec: question(namespace, account, right), ..Default::default() };
            let answer = api.create(&PostParams::default(), &review).await?;
            if !answer.status.is_some_and(|status| status.allowed) {
                continue 'sets;
            }
        }
        return Ok(true);
    }
    Ok(false)
}

fn question(namespace: &str, account: &str, right: ResourceAttributes) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: Some(format!("system:serviceaccount:{namespace}:{account}")),
        groups: Some(vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ]),
        resource_attributes: Some(right),
        ..SubjectAccessReviewSpec::default()
    }
}

/// The source that a DataVolume refers to by a DataSource.
async fn referred(
    client: &Client,
    own: &str,
    made: &DataVolume,
) -> Result<Option<DataVolumeSource>, kube::Error> {
    let Some(reference) = made.spec.source_ref.as_ref().filter(|_| made.spec.source.is_none()) else {
        return Ok(None);
    };
    let namespace = reference.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or(own);
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(groups::CDI, "v1beta1", "DataSource"));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let found = api.get(&reference.name).await?;
    Ok(source_in(&found.data))
}

/// What a DataSource names: directly, or through others, which its status tells.
fn source_in(data_source: &Value) -> Option<DataVolumeSource> {
    let direct = data_source.pointer("/spec/source")?;
    let source =
        if direct["dataSource"].is_object() { data_source.pointer("/status/source")? } else { direct };
    if let Ok(pvc) = DataVolumeSourcePvc::deserialize(&source["pvc"]) {
        return Some(DataVolumeSource { pvc: Some(pvc), ..DataVolumeSource::default() });
    }
    let snapshot = DataVolumeSourceSnapshot::deserialize(&source["snapshot"]).ok()?;
    Some(DataVolumeSource { snapshot: Some(snapshot), ..DataVolumeSource::default() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::vm::testing::{machine, read};

    #[test]
    fn clients_know_a_refusal_by_its_words() {
        let refused = Error::Forbidden { account: "a".to_owned(), namespace: "b".to_owned() }.to_string();
        assert!(refused.contains("insufficient permissions in clone source namespace"), "{refused}");
    }

    #[test]
    fn the_account_is_that_of_the_machines_pods() {
        let with = |spec: Value| account(&machine(json!({ "spec": { "template": { "spec": spec } } })));
        assert_eq!(with(json!({})), "default");
        assert_eq!(with(json!({ "serviceAccountName": "own" })), "own");
        let volume = json!({ "name": "v", "serviceAccount": { "serviceAccountName": "mounted" } });
        assert_eq!(with(json!({ "volumes": [volume] })), "mounted");
    }

    #[test]
    fn a_data_source_names_its_source_itself_or_in_its_status() {
        let pvc = json!({ "pvc": { "namespace": "images", "name": "a" } });
        let name = |value: Value| source_in(&value).and_then(|source| Some(source.pvc?.name));
        assert_eq!(name(json!({ "spec": { "source": pvc } })).as_deref(), Some("a"));
        let through = json!({ "spec": { "source": { "dataSource": {} } }, "status": { "source": pvc } });
        assert_eq!(name(through).as_deref(), Some("a"));
        assert_eq!(name(json!({ "spec": { "source": {} } })), None);
    }

    #[test]
    fn only_clones_are_asked_about() {
        let of = |source: Value| {
            Cloned::of(&read(json!({ "spec": { "source": source } })), "own").map(|cloned| cloned.namespace)
        };
        assert_eq!(of(json!({ "blank": {} })), None);
        assert_eq!(of(json!({ "pvc": { "namespace": "images", "name": "a" } })).as_deref(), Some("images"));
        assert_eq!(of(json!({ "snapshot": { "namespace": "", "name": "a" } })).as_deref(), Some("own"));
    }
}
