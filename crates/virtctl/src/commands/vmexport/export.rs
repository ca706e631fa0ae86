//! The objects of an export: itself, and the secret with its token.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Secret, TypedLocalObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource as _;
use kubevirt_api::duration::Duration;
use kubevirt_api::export::{VirtualMachineExport, VirtualMachineExportSpec};
use kubevirt_api::names::groups;

/// The entry of a secret that has the token.
pub const TOKEN: &str = "token";
/// How long tokens are.
pub const TOKEN_LENGTH: usize = 20;

/// An export that is still to be made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct New {
    /// Its name.
    pub name: String,
    /// What is exported.
    pub source: TypedLocalObjectReference,
    /// How long it lives.
    pub ttl: Option<Duration>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

impl New {
    /// The object.
    pub fn export(&self, namespace: &str) -> VirtualMachineExport {
        let spec = VirtualMachineExportSpec {
            source: self.source.clone(),
            token_secret_ref: Some(secret_name(&self.name)),
            ttl_duration: self.ttl.clone(),
        };
        let mut export = VirtualMachineExport::new(&self.name, spec);
        export.metadata.namespace = Some(namespace.to_owned());
        export.metadata.labels = Some(self.labels.clone()).filter(|labels| !labels.is_empty());
        export.metadata.annotations = Some(self.annotations.clone()).filter(|all| !all.is_empty());
        export
    }
}

/// A claim, as the source of an export.
pub fn claim(name: &str) -> TypedLocalObjectReference {
    source("", "PersistentVolumeClaim", name)
}

/// A machine, as the source of an export.
pub fn machine(name: &str) -> TypedLocalObjectReference {
    source(groups::KUBEVIRT, "VirtualMachine", name)
}

/// A snapshot, as the source of an export.
pub fn snapshot(name: &str) -> TypedLocalObjectReference {
    source(groups::SNAPSHOT, "VirtualMachineSnapshot", name)
}

/// A template, as the source of an export.
pub fn template(name: &str) -> TypedLocalObjectReference {
    source(groups::TEMPLATE, "VirtualMachineTemplate", name)
}

fn source(group: &str, kind: &str, name: &str) -> TypedLocalObjectReference {
    TypedLocalObjectReference { api_group: Some(group.into()), kind: kind.into(), name: name.into() }
}

fn secret_name(export: &str) -> String {
    format!("secret-{export}")
}

/// The secret with the token of an export that exists, which owns it.
pub fn secret(export: &VirtualMachineExport, token: &str) -> Secret {
    // To block the owner's deletion would need more rights on some clusters, and nobody needs it.
    let owner = export.controller_owner_ref(&());
    let owner = owner.map(|owner| OwnerReference { block_owner_deletion: Some(false), ..owner });
    Secret {
        metadata: ObjectMeta {
            name: Some(secret_name(export.metadata.name.as_deref().unwrap_or_default())),
            namespace: export.metadata.namespace.clone(),
            owner_references: owner.map(|owner| vec![owner]),
            ..Default::default()
        },
        type_: Some("Opaque".into()),
        data: Some(BTreeMap::from([(TOKEN.to_owned(), ByteString(token.into()))])),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_export_and_its_secret_belong_together() {
        let new = New {
            name: "e".into(),
            source: machine("vm"),
            ttl: Some(Duration("4h".into())),
            labels: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
            annotations: BTreeMap::new(),
        };
        let mut export = new.export("ns");
        let expected = json!({
            "apiVersion": "export.kubevirt.io/v1", "kind": "VirtualMachineExport",
            "metadata": { "name": "e", "namespace": "ns", "labels": { "a": "b" } },
            "spec": {
                "source": { "apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "vm" },
                "tokenSecretRef": "secret-e", "ttlDuration": "4h",
            },
        });
        assert_eq!(serde_json::to_value(&export).unwrap(), expected);
        export.metadata.uid = Some("u".into());
        let secret = secret(&export, "t");
        assert_eq!(secret.metadata.name.as_deref(), export.spec.token_secret_ref.as_deref());
        let owner = &secret.metadata.owner_references.unwrap()[0];
        assert_eq!((owner.uid.as_str(), owner.block_owner_deletion), ("u", Some(false)));
        assert_eq!(secret.data.unwrap()["token"].0, b"t");
    }

    #[test]
    fn sources_have_their_groups() {
        let group = |source: TypedLocalObjectReference| source.api_group.unwrap();
        assert_eq!(group(claim("x")), "");
        assert_eq!(group(snapshot("x")), "snapshot.kubevirt.io");
        assert_eq!(group(template("x")), "template.kubevirt.io");
    }
}
