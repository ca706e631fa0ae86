//! Applies an instance type and a preference to the specification of an instance.
//!
//! What an instance type sets, the instance must leave open; what a preference sets is used where the instance
//! leaves it open.

mod conflicts;
mod instancetype;
mod preference;

use std::collections::BTreeMap;

use kubevirt_api::instancetype::VirtualMachineInstancetypeSpec;
use kubevirt_api::preference::VirtualMachinePreferenceSpec;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::{VirtualMachineInstanceSpec, VmiTemplate};

use super::topology::Topology;
use crate::{Path, Problems};

pub use preference::{apply_preference, attach_devices};

/// Annotations as metadata holds them.
pub type Annotations = Option<BTreeMap<String, String>>;

/// Applies both; nothing changes where anything conflicts. `path` is where the specification stands.
pub fn apply(
    path: &Path<'_>,
    instancetype: Option<&VirtualMachineInstancetypeSpec>,
    preference: Option<&VirtualMachinePreferenceSpec>,
    spec: &mut VirtualMachineInstanceSpec,
    annotations: &mut Annotations,
) -> Problems {
    if let Some(instancetype) = instancetype {
        let problems = apply_instancetype(path, instancetype, preference, spec, annotations);
        if !problems.is_empty() {
            return problems;
        }
    }
    if let Some(preference) = preference {
        apply_preference(preference, spec, annotations);
    }
    Problems::default()
}

/// The template of a VM with both applied, or what stands against that.
pub(super) fn template(
    vm: &VirtualMachine,
    instancetype: Option<&VirtualMachineInstancetypeSpec>,
    preference: Option<&VirtualMachinePreferenceSpec>,
) -> Result<VmiTemplate, Problems> {
    let mut template = vm.spec.template.clone();
    if instancetype.is_some() || preference.is_some() {
        let spec = template.spec.get_or_insert_default();
        let annotations = &mut template.metadata.get_or_insert_default().annotations;
        apply(&Path::new("spec.template.spec"), instancetype, preference, spec, annotations).into_result()?;
    }
    Ok(template)
}

/// Applies an instance type, with its CPUs in the shape that the preference wants; nothing changes where anything
/// conflicts. `path` is where the specification stands.
pub fn apply_instancetype(
    path: &Path<'_>,
    instancetype: &VirtualMachineInstancetypeSpec,
    preference: Option<&VirtualMachinePreferenceSpec>,
    spec: &mut VirtualMachineInstanceSpec,
    annotations: &mut Annotations,
) -> Problems {
    let mut problems = conflicts::find(path, instancetype, spec, annotations.as_ref());
    let layout = instancetype::layout(instancetype, &Topology::preferred(preference), &mut problems);
    let request = instancetype::memory_request(instancetype, &mut problems);
    if let Some(layout) = layout.filter(|_| problems.is_empty()) {
        instancetype::overlay(instancetype, layout, request, spec, annotations);
    }
    problems
}

/// Puts what is given in place of what is there.
fn overlay<T: Clone>(target: &mut Option<T>, given: &Option<T>) {
    if given.is_some() {
        target.clone_from(given);
    }
}

/// Uses what is preferred where nothing is there.
fn fill<T: Clone>(target: &mut Option<T>, preferred: &Option<T>) {
    if target.is_none() {
        target.clone_from(preferred);
    }
}

/// Uses the word that is preferred where there is none; an empty word is none.
fn fill_word<T: Clone + Word>(target: &mut Option<T>, preferred: &Option<T>) {
    if target.as_ref().is_none_or(Word::is_blank) && preferred.as_ref().is_some_and(|word| !word.is_blank()) {
        target.clone_from(preferred);
    }
}

/// Text, free or from a closed set, that may be empty.
trait Word {
    fn is_blank(&self) -> bool;
}

macro_rules! word {
    ($($word:ty),+ $(,)?) => {
        $(impl Word for $word {
            fn is_blank(&self) -> bool {
                self.is_empty()
            }
        })+
    };
}

word!(
    String,
    kubevirt_api::vmi::devices::InputBus,
    kubevirt_api::vmi::disks::DiskBus,
    kubevirt_api::vmi::disks::DriverCache,
    kubevirt_api::vmi::disks::DriverIo,
);
