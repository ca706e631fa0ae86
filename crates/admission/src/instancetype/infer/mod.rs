//! Infers what a VM refers to from labels on what one of its volumes holds.

mod search;

use kubevirt_api::vm::{InferFromVolumeFailurePolicy, VirtualMachine};

use self::search::{Failure, Inferred, Search, Source};
use super::find::namespace;
use super::reference::{Matcher, Role};
use crate::{Objects, Path, Problems};

/// Replaces a reference that names a volume by one that names the object which that volume's labels give.
pub fn infer(objects: &dyn Objects, vm: &mut VirtualMachine, role: Role) -> Problems {
    let mut problems = Problems::default();
    let Some(matcher) = role.matcher(vm).filter(|matcher| !matcher.infer_from_volume.is_empty()) else {
        return problems;
    };
    let ignore = matcher.failure_policy == Some(&InferFromVolumeFailurePolicy::Ignore);
    match from_volume(objects, vm, role, matcher) {
        Ok(object) => {
            // Whoever says what to do without an instance type has set the memory for that case.
            let instancetype = role == Role::Instancetype;
            if let Some(spec) = vm.spec.template.spec.as_mut().filter(|_| ignore && instancetype) {
                spec.domain.memory = None;
            }
            role.refer(vm, Some(object));
        }
        Err(Failure::Unlabelled(_)) if ignore => role.refer(vm, None),
        Err(Failure::Unlabelled(why)) => {
            let message =
                format!("{why}; name the {} instead, or set the failure policy to Ignore", role.what());
            problems.invalid(&Path::new(role.field()).at("inferFromVolume"), message);
        }
        Err(Failure::Missing(what)) => {
            let message = format!("{what} does not exist, so the {} cannot be inferred from it", role.what());
            problems.not_found(&Path::new(role.field()).at("inferFromVolume"), message);
        }
    }
    problems
}

fn from_volume(objects: &dyn Objects, vm: &VirtualMachine, role: Role, matcher: Matcher<'_>) -> Inferred {
    let name = matcher.infer_from_volume;
    let volumes = vm.spec.template.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    let Some(volume) = volumes.into_iter().flatten().find(|volume| volume.name == name) else {
        return Err(Failure::Missing(format!("the volume {name:?}")));
    };
    let search = Search { objects, role, own_namespace: namespace(vm) };
    if let Some(claim) = &volume.persistent_volume_claim {
        return search.claim(search.own_namespace, &claim.claim_name);
    }
    if let Some(data_volume) = &volume.data_volume {
        let mut templates = vm.spec.data_volume_templates.iter().flatten();
        let template = templates.find(|template| {
            let metadata = template.metadata.as_ref();
            metadata.and_then(|metadata| metadata.name.as_deref()) == Some(&data_volume.name)
        });
        return match template {
            Some(template) => search.source(Source::of_template(&template.spec)),
            None => search.data_volume(&data_volume.name),
        };
    }
    Err(Failure::Unlabelled(format!("the volume {name:?} holds neither a claim nor a DataVolume")))
}

#[cfg(test)]
mod tests;
