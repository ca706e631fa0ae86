//! The target of a clone that names none.

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use kubevirt_api::clone::VirtualMachineClone;
use kubevirt_api::names::groups;
use uuid::Uuid;

use crate::{Context, Operation, Problems};

/// Letters and digits that make no words and are not mistaken for each other.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;

/// Makes the target of a new clone a machine, and gives it a name, where these are left open.
pub fn apply(
    cx: &Context<'_>,
    clone: &mut VirtualMachineClone,
    _old: Option<&VirtualMachineClone>,
) -> Problems {
    if cx.request.operation == Operation::Create {
        let target = clone.spec.target.get_or_insert_with(|| TypedLocalObjectReference {
            api_group: Some(groups::KUBEVIRT.to_owned()),
            kind: "VirtualMachine".to_owned(),
            name: String::new(),
        });
        if target.name.is_empty() {
            target.name = format!("clone-{}-{}", clone.spec.source.name, suffix((cx.fresh_uuid)()));
        }
    }
    Problems::default()
}

/// A few random characters of a name, from the leading bytes of a random UUID.
fn suffix(random: Uuid) -> String {
    let letter = |byte: u8| ALPHABET.get(usize::from(byte) % ALPHABET.len()).copied().map(char::from);
    random.into_bytes().into_iter().take(SUFFIX).filter_map(letter).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, read};

    fn target(world: &World, target: &Value) -> Value {
        let source = json!({ "apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web" });
        let mut clone = read(json!({ "spec": { "source": source, "target": target } }));
        assert!(world.run(|cx| apply(cx, &mut clone, None)).is_empty());
        serde_json::to_value(clone.spec.target).unwrap()
    }

    #[test]
    fn a_new_clone_has_a_target() {
        let machine =
            |name: &str| json!({ "apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": name });
        let made = target(&World::default(), &Value::Null);
        let name = made["name"].as_str().unwrap();
        assert!(name.starts_with("clone-web-") && name.len() == "clone-web-".len() + SUFFIX, "{name}");
        assert_eq!(made, machine(name));
        assert_eq!(target(&World::default(), &machine("")), made);
        assert_eq!(target(&World::default(), &machine("copy")), machine("copy"));
        let other = json!({ "kind": "Other", "name": "" });
        assert_eq!(target(&World::default(), &other), json!({ "kind": "Other", "name": name }));
        assert_eq!(target(&World::default().updating(), &Value::Null), Value::Null);
    }
}
