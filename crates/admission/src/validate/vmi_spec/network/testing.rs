//! Specifications with networks for the tests of this folder.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use serde_json::{Value, json};

use super::check;
use crate::testing::{World, assert_fields, patched, read};
use crate::{Path, Problems};

/// An instance on the pod network, with a patch.
pub fn spec(patch: Value) -> VirtualMachineInstanceSpec {
    let base = json!({
        "networks": [{ "name": "default", "pod": {} }],
        "domain": { "devices": { "interfaces": [{ "name": "default", "masquerade": {} }] } },
    });
    read(patched(&base, &patch))
}

/// The patch that changes the one interface of the base.
pub fn with_interface(patch: &Value) -> Value {
    let interface = patched(&json!({ "name": "default", "masquerade": {} }), patch);
    json!({ "domain": { "devices": { "interfaces": [interface] } } })
}

/// Fails unless the patched instance has problems with exactly these fields.
pub fn refused(case: &str, patch: Value, fields: &[&str]) {
    refused_in(&World::default(), case, patch, fields);
}

/// The same in a cluster with other settings.
pub fn refused_in(world: &World, case: &str, patch: Value, fields: &[&str]) {
    let spec = spec(patch);
    let mut problems = Problems::default();
    world.run(|cx| check(cx, &Path::new("spec"), &spec, &mut problems));
    assert_fields(case, &problems, fields);
}
