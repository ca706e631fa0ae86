//! Checks a VM as it becomes with its instance type and preference.

use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VmiTemplate;

use super::find::{self, FoundInstancetype, FoundPreference};
use super::{apply, requirements};
use crate::{Context, Problem, Problems};

/// A VM's template with its instance type and preference applied.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The template; defaults are to be filled in before it is checked further.
    pub template: VmiTemplate,
    /// The instance type, as far as there is one.
    pub instancetype: Option<FoundInstancetype>,
    /// The preference, as far as there is one.
    pub preference: Option<FoundPreference>,
    /// What the user should know, but nothing that is wrong.
    pub notes: Problems,
}

impl Checked {
    /// Where the template, with defaults filled in, falls short of what the preference requires.
    pub fn requirements(&self) -> Problems {
        let none = Default::default();
        let spec = self.template.spec.as_ref().unwrap_or(&none);
        requirements::check(self.instancetype.as_deref(), self.preference.as_deref(), spec)
    }
}

/// Applies instance type and preference to the template of a VM, or says what stands against that.
///
/// One that does not exist is no problem here: the VM may come before it, and waits for it when it is started.
pub fn check_vm(cx: &Context<'_>, vm: &VirtualMachine) -> Result<Checked, Problems> {
    let mut notes = Problems::default();
    let instancetype = known(find::instancetype(cx.objects, vm), &mut notes);
    let preference = known(find::preference(cx.objects, vm), &mut notes);
    let template = apply::template(vm, instancetype.as_deref(), preference.as_deref())?;
    Ok(Checked { template, instancetype, preference, notes })
}

fn known<T>(found: Result<Option<T>, Problem>, notes: &mut Problems) -> Option<T> {
    found.unwrap_or_else(|problem| {
        notes.warn(format!("{problem}; the VM cannot start until this is put right"));
        None
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, patched, read, shared};

    fn world() -> World {
        let mut world = World::default();
        world.objects.cluster_instancetypes = vec![shared(json!({
            "metadata": { "name": "i" },
            "spec": {
                "cpu": { "guest": 3 }, "memory": { "guest": "1Gi" }, "annotations": { "size": "small" },
            },
        }))];
        let preference =
            |name: &str, spec: Value| shared(json!({ "metadata": { "name": name }, "spec": spec }));
        world.objects.cluster_preferences = vec![
            preference("p", json!({ "preferredSubdomain": "s", "cpu": { "preferredCPUTopology": "cores" } })),
            preference("even", json!({ "cpu": { "preferredCPUTopology": "spread" } })),
            preference("large", json!({ "requirements": { "cpu": { "guest": 8 } } })),
        ];
        world
    }

    fn checked(spec: Value) -> Result<Checked, Problems> {
        let base = json!({
            "metadata": { "name": "vm", "namespace": "default" },
            "spec": { "template": { "spec": { "domain": { "devices": {} } } } },
        });
        let vm = read(patched(&base, &json!({ "spec": spec })));
        world().run(|cx| check_vm(cx, &vm))
    }

    #[test]
    fn both_are_applied_to_the_template() {
        let spec = json!({ "instancetype": { "name": "i" }, "preference": { "name": "p" } });
        let checked = checked(spec).unwrap();
        let template = json!(checked.template);
        assert_eq!(template["spec"]["domain"]["cpu"], json!({ "sockets": 1, "cores": 3, "threads": 1 }));
        assert_eq!(template["spec"]["subdomain"], "s");
        assert_eq!(template["metadata"]["annotations"], json!({ "size": "small" }));
        assert!(checked.requirements().is_empty() && checked.notes.warnings().is_empty());
    }

    #[test]
    fn conflicts_are_found_in_the_template() {
        let own = json!({ "spec": { "domain": { "cpu": { "cores": 1 }, "memory": { "guest": "1Gi" } } } });
        let both = ["spec.template.spec.domain.cpu.cores", "spec.template.spec.domain.memory.guest"];
        let cases = [
            ("neither", json!({ "template": own }), vec![]),
            ("preference", json!({ "preference": { "name": "p" }, "template": own }), vec![]),
            ("instance type", json!({ "instancetype": { "name": "i" }, "template": own }), both.to_vec()),
            (
                "uneven spread",
                json!({ "instancetype": { "name": "i" }, "preference": { "name": "even" } }),
                vec!["instancetype.spec.cpu.guest"],
            ),
            (
                "annotation",
                json!({
                    "instancetype": { "name": "i" },
                    "template": { "metadata": { "annotations": { "size": "large" } } },
                }),
                vec!["annotations.size"],
            ),
            ("no template", json!({ "instancetype": { "name": "i" }, "template": { "spec": null } }), vec![]),
        ];
        for (name, spec, expected) in cases {
            assert_fields(name, &checked(spec).err().unwrap_or_default(), &expected);
        }
    }

    #[test]
    fn what_does_not_exist_is_only_noted() {
        let checked =
            checked(json!({ "instancetype": { "name": "x" }, "preference": { "name": "y" } })).unwrap();
        assert!(checked.instancetype.is_none() && checked.preference.is_none());
        assert_eq!(checked.notes.warnings().len(), 2);
        assert_eq!(json!(checked.template), json!({ "spec": { "domain": { "devices": {} } } }));
    }

    #[test]
    fn requirements_are_those_of_the_preference() {
        let spec = json!({ "instancetype": { "name": "i" }, "preference": { "name": "large" } });
        assert_fields("small", &checked(spec).unwrap().requirements(), &["spec.instancetype"]);
    }
}
