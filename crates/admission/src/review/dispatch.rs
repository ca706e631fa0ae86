//! Which rules apply to which kind.

use std::collections::HashSet;

use kubevirt_api::crd::{KINDS, Kind};
use kubevirt_api::names::groups;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Incoming, Outcome, Refusal, Steps, raw};
use crate::validate::eviction::Decision;
use crate::{Context, Operation, Problems, mutate, validate};

type Mutate<K> = fn(&Context<'_>, &mut K, Option<&K>) -> Problems;
type Check<K> = fn(&Context<'_>, &K, Option<&K>) -> Problems;

/// What becomes of the object of a request.
pub fn review(cx: &Context<'_>, incoming: &Incoming, steps: Steps) -> Outcome {
    let resource = &incoming.resource;
    if resource.group == groups::POLICY && resource.kind == "Eviction" {
        return evict(cx, incoming);
    }
    let known = |kind: &&Kind| kind.group == resource.group && kind.name == resource.kind;
    let Some(kind) = KINDS.iter().find(known) else {
        let message = format!("{:?} of group {:?} is not a kind of KubeVirt", resource.kind, resource.group);
        return Outcome {
            refusal: Some(Refusal { code: 400, reason: "BadRequest", message }),
            ..Outcome::default()
        };
    };
    if !kind.versions.iter().any(|version| version.name == resource.version) {
        let served: Vec<&str> = kind.versions.iter().map(|version| version.name).collect();
        let message = format!(
            "version {:?} of {} is not served; use {}",
            resource.version,
            kind.name,
            served.join(" or ")
        );
        return Outcome {
            refusal: Some(Refusal { code: 400, reason: "BadRequest", message }),
            ..Outcome::default()
        };
    }
    Dispatch { cx, incoming, steps, kind }.by_kind()
}

fn evict(cx: &Context<'_>, incoming: &Incoming) -> Outcome {
    let mut problems = incoming.problems.clone();
    let refusal = raw::decode(&incoming.object, &mut problems).and_then(|eviction| {
        match validate::eviction::check(cx, &eviction) {
            Decision::Allow => None,
            Decision::Refuse { message } | Decision::Evacuate { message, .. } => {
                Some(Refusal { code: 429, reason: "TooManyRequests", message })
            }
        }
    });
    Outcome { problems, refusal, ..Outcome::default() }
}

struct Dispatch<'a> {
    cx: &'a Context<'a>,
    incoming: &'a Incoming,
    steps: Steps,
    kind: &'static Kind,
}

impl Dispatch<'_> {
    fn by_kind(&self) -> Outcome {
        if self.cx.request.subresource == "status" {
            return self.status();
        }
        match self.kind.name {
            "KubeVirt" => self.kubevirt(),
            "MigrationPolicy" => self.check(validate::migration_policy::check),
            "Plugin" => self.check(validate::plugin::check),
            "VirtualMachine" => self.mutate_and_check(mutate::vm::apply, validate::vm::check),
            "VirtualMachineBackup" => self.check(validate::backup::check_backup),
            "VirtualMachineBackupTracker" => self.check(validate::backup::check_tracker),
            "VirtualMachineClone" => self.mutate_and_check(mutate::clone::apply, validate::clone::check),
            "VirtualMachineClusterInstancetype" => self.check(validate::instancetype::check_cluster),
            "VirtualMachineClusterPreference" => self.check(validate::preference::check_cluster),
            "VirtualMachineExport" => self.check(validate::export::check),
            "VirtualMachineInstance" => self.mutate_and_check(mutate::vmi::apply, validate::vmi::check),
            "VirtualMachineInstanceMigration" => {
                self.mutate_and_check(mutate::migration::apply, validate::migration::check)
            }
            "VirtualMachineInstancePreset" => self.check(validate::preset::check),
            "VirtualMachineInstanceReplicaSet" => self.check(validate::replica_set::check),
            "VirtualMachineInstancetype" => self.check(validate::instancetype::check),
            "VirtualMachinePool" => self.check(validate::pool::check),
            "VirtualMachinePreference" => self.check(validate::preference::check),
            "VirtualMachineRestore" => self.check(validate::restore::check),
            "VirtualMachineSnapshot" => self.check(validate::snapshot::check),
            // Contents of snapshots and templates are held to their schema only.
            _ => self.schema_only(),
        }
    }

    fn status(&self) -> Outcome {
        match self.kind.name {
            "VirtualMachine" => self.check(validate::status::check),
            _ => self.schema_only(),
        }
    }

    fn kubevirt(&self) -> Outcome {
        if self.cx.request.operation == Operation::Delete {
            let mut problems = self.incoming.problems.clone();
            let old = raw::decode(&self.incoming.old_object, &mut problems);
            if let Some(old) = old {
                problems.append(validate::kubevirt::check_delete(self.cx, &old));
            }
            return Outcome { problems, ..Outcome::default() };
        }
        self.check(validate::kubevirt::check)
    }

    fn schema_only(&self) -> Outcome {
        let mut problems = self.incoming.problems.clone();
        self.object(&mut problems);
        Outcome { problems, ..Outcome::default() }
    }

    fn check<K: DeserializeOwned + Serialize>(&self, check: Check<K>) -> Outcome {
        self.run(None, check)
    }

    fn mutate_and_check<K: DeserializeOwned + Serialize>(
        &self,
        mutate: Mutate<K>,
        check: Check<K>,
    ) -> Outcome {
        self.run(Some(mutate), check)
    }

    fn run<K: DeserializeOwned + Serialize>(&self, mutate: Option<Mutate<K>>, check: Check<K>) -> Outcome {
        let mut problems = self.incoming.problems.clone();
        if self.cx.request.operation == Operation::Delete {
            return Outcome::default();
        }
        let read = self.read_at_once();
        // Whatever the schema says of the old object, it is stored already: only its own decoding counts.
        let old: Option<K> = match &self.incoming.old_object {
            Value::Null => None,
            old => raw::decode(&self.normalized(old), &mut Problems::default()),
        };
        let read = read.or_else(|| raw::decode::<K>(&self.object(&mut problems), &mut problems));
        let Some(mut typed) = read else {
            return Outcome { problems, ..Outcome::default() };
        };
        let mut change = None;
        if let Some(mutate) = mutate.filter(|_| self.steps.mutate()) {
            // A patch of what had to be mended before it could be read would be of no use.
            let before = problems.is_empty().then(|| to_value(&typed));
            merge(&mut problems, mutate(self.cx, &mut typed, old.as_ref()));
            change = before.map(|before| (before, to_value(&typed)));
        }
        if self.steps.validate() {
            merge(&mut problems, check(self.cx, &typed, old.as_ref()));
        }
        Outcome { problems, change, refusal: None }
    }

    /// The object as it came, where the verdict on it is given elsewhere; nothing if that cannot be read.
    fn read_at_once<K: DeserializeOwned>(&self) -> Option<K> {
        let wanted = self.steps == Steps::Prepare && self.incoming.problems.is_empty();
        wanted.then(|| K::deserialize(&self.incoming.object).ok()).flatten()
    }

    /// The object in the form that an API server would store, and what its schema has against it.
    fn object(&self, problems: &mut Problems) -> Value {
        let mut object = self.incoming.object.clone();
        raw::check(self.kind, &mut object, problems);
        object
    }

    fn normalized(&self, object: &Value) -> Value {
        let mut object = object.clone();
        raw::check(self.kind, &mut object, &mut Problems::default());
        object
    }
}

/// Adds what was found to what is known, but nothing of a field that was found wanting already, or inside of one.
fn merge(known: &mut Problems, found: Problems) {
    let wanting: HashSet<String> = known.iter().map(|problem| problem.field.clone()).collect();
    known.append(found.without(&wanting));
}

fn to_value<K: Serialize>(object: &K) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
