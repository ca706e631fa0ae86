//! A cluster in memory for tests of rules.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_api::kubevirt::KubeVirt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{ClusterConfig, Context, KnownObjects, Operation, OwnAccounts, Problems, Request, User};

/// The rule for a kind, new or changed.
pub type Check<K> = fn(&Context<'_>, &K, Option<&K>) -> Problems;

/// A case of a table: its name, a patch, and the fields of the problems.
pub type Case<'a> = (&'a str, Value, &'a [&'a str]);

/// What a rule is tried in: an ordinary user who creates an object in a cluster with default settings.
pub struct World {
    /// Who asks for what.
    pub request: Request,
    /// What the installation is set to.
    pub config: ClusterConfig,
    /// The other objects.
    pub objects: KnownObjects,
}

impl Default for World {
    fn default() -> Self {
        let request = Request {
            operation: Operation::Create,
            namespace: "default".into(),
            name: "test".into(),
            subresource: String::new(),
            user: User {
                name: "alice".into(),
                groups: vec!["system:authenticated".into()],
                ..User::default()
            },
            dry_run: false,
        };
        Self { request, config: ClusterConfig::default(), objects: KnownObjects::default() }
    }
}

impl World {
    /// The same, with these feature gates on.
    pub fn with_gates(self, gates: &[&str]) -> Self {
        self.with_configuration(json!({ "developerConfiguration": { "featureGates": gates } }))
    }

    /// The same, with this `spec.configuration` of `KubeVirt`.
    pub fn with_configuration(mut self, configuration: Value) -> Self {
        self.config =
            ClusterConfig::of(&read::<KubeVirt>(json!({ "spec": { "configuration": configuration } })));
        self
    }

    /// The same for a change instead of a creation.
    pub fn updating(mut self) -> Self {
        self.request.operation = Operation::Update;
        self
    }

    /// The same, asked for by this user.
    pub fn by(mut self, user: &str) -> Self {
        self.request.user.name = user.into();
        self
    }

    /// The same, asked for by one of our own components.
    pub fn by_controller(self) -> Self {
        self.by("system:serviceaccount:kubevirt:kubevirt-controller")
    }

    /// Fails unless a rule finds, for new objects that are `base` with a patch, problems with exactly these fields.
    pub fn assert_new<K: DeserializeOwned>(&self, check: Check<K>, base: &Value, cases: &[Case<'_>]) {
        for (case, patch, expected) in cases {
            let new = read(patched(base, patch));
            assert_fields(case, &self.run(|cx| check(cx, &new, None)), expected);
        }
    }

    /// The same for changes of `base`.
    pub fn assert_changed<K: DeserializeOwned>(&self, check: Check<K>, base: &Value, cases: &[Case<'_>]) {
        let old = read(base.clone());
        for (case, patch, expected) in cases {
            let new = read(patched(base, patch));
            assert_fields(case, &self.run(|cx| check(cx, &new, Some(&old))), expected);
        }
    }

    /// What a function makes of this world.
    pub fn run<T>(&self, rule: impl FnOnce(&Context<'_>) -> T) -> T {
        let own_accounts = OwnAccounts::of_installation("kubevirt");
        rule(&Context {
            request: &self.request,
            config: &self.config,
            objects: &self.objects,
            own_accounts: &own_accounts,
            now: Time("2026-01-02T03:04:05Z".parse().unwrap()),
            fresh_uuid: &|| Uuid::from_u128(0x1234_5678_9abc_4def_8123_4567_89ab_cdef),
        })
    }
}

/// An object from JSON.
pub fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// An object from JSON, as the stores of a [`World`] hold it.
pub fn shared<T: DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(read(value))
}

/// `base` with `patch` laid over it as a JSON merge patch: null removes.
pub fn patched(base: &Value, patch: &Value) -> Value {
    let mut result = base.clone();
    merge_patch(&mut result, patch);
    result
}

fn merge_patch(base: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *base = patch.clone();
        return;
    };
    if !base.is_object() {
        *base = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            base.as_object_mut().unwrap().remove(key);
        } else {
            merge_patch(&mut base[key], value);
        }
    }
}

/// The fields that problems are about, in order of discovery.
pub fn fields(problems: &Problems) -> Vec<&str> {
    problems.iter().map(|problem| problem.field.as_str()).collect()
}

/// Fails with all messages unless the problems are about exactly these fields, in any order.
pub fn assert_fields(case: &str, problems: &Problems, expected: &[&str]) {
    let mut found = fields(problems);
    let mut expected = expected.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "{case}: {messages:#?}");
}
