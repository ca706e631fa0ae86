//! What tests of this controller share.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kubevirt_admission::{ClusterConfig, KnownObjects};
use kubevirt_api::vm::VirtualMachine;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::observe::{Mirrored, Observed};

/// So many seconds after the beginning.
pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A value of one of our types.
pub fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// An object as stores hold it.
pub fn shared<T: DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(read(value))
}

/// A value with a merge patch applied.
pub fn patched(base: &Value, patch: &Value) -> Value {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            let mut result = base.clone();
            for (key, value) in patch {
                let merged = patched(base.get(key).unwrap_or(&Value::Null), value);
                result.insert(key.clone(), merged);
            }
            Value::Object(result)
        }
        _ => patch.clone(),
    }
}

/// The machine `web`, with changes.
pub fn machine(patch: Value) -> VirtualMachine {
    let base = json!({
        "metadata": { "name": "web", "namespace": "default", "uid": "vm-uid", "generation": 1 },
        "spec": { "template": { "spec": { "domain": { "devices": {} } } } },
    });
    read(patched(&base, &patch))
}

/// A machine in a cluster that has the importer and nothing else.
pub fn seen(vm: VirtualMachine) -> Observed {
    Observed {
        vm: Arc::new(vm),
        instance: None,
        revisions: Vec::new(),
        data_volumes: BTreeMap::new(),
        data_volumes_served: true,
        claims: BTreeMap::new(),
        objects: KnownObjects::default(),
        config: Arc::new(ClusterConfig::default()),
        namespace_labels: BTreeMap::new(),
        mirrored: Mirrored::default(),
    }
}
