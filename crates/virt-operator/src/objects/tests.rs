//! What must hold of all objects together.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kubevirt_api::crd::KINDS;
use kubevirt_api::kubevirt::KubeVirt;
use kubevirt_api::names::external::kubernetes::NODE_OF_TOKEN;
use kubevirt_api::names::{accounts, components, groups};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::*;
use crate::{Certificates, Images, Lifetimes};

fn certificates() -> Certificates {
    Certificates::issue("virt", Lifetimes::default(), Timestamp::UNIX_EPOCH).unwrap()
}

fn config() -> InstallConfig {
    let images = Images {
        components: "registry/kubevirt:1".into(),
        launcher: "registry/launcher:1".into(),
        pull_policy: "IfNotPresent".into(),
        pull_secrets: vec!["password".into()],
    };
    InstallConfig { api_services: true, ..InstallConfig::new("virt", images, certificates()) }
}

/// Everything that there is, also what is for later.
fn everything(config: &InstallConfig) -> Vec<Value> {
    let later = [services::operator_webhook(config), webhooks::operator(config)];
    definitions().into_iter().chain(all(config)).chain(later).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn find(objects: &[Value], kind: &str, name: &str) -> Value {
    let found = objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}")).clone()
}

fn through<T: Serialize + DeserializeOwned>(object: &Value) -> Value {
    serde_json::to_value(serde_json::from_value::<T>(object.clone()).unwrap()).unwrap()
}

/// The object as its type reads and writes it: without fields that the type does not have.
fn through_type(object: &Value) -> Value {
    match text(&object["kind"]) {
        "APIService" => through::<APIService>(object),
        "ClusterRole" => through::<ClusterRole>(object),
        "ClusterRoleBinding" => through::<ClusterRoleBinding>(object),
        "ConfigMap" => through::<ConfigMap>(object),
        "CustomResourceDefinition" => through::<CustomResourceDefinition>(object),
        "DaemonSet" => through::<DaemonSet>(object),
        "Deployment" => through::<Deployment>(object),
        "KubeVirt" => through::<KubeVirt>(object),
        "MutatingWebhookConfiguration" => through::<MutatingWebhookConfiguration>(object),
        "Namespace" => through::<Namespace>(object),
        "PodDisruptionBudget" => through::<PodDisruptionBudget>(object),
        "PriorityClass" => through::<PriorityClass>(object),
        "Role" => through::<Role>(object),
        "RoleBinding" => through::<RoleBinding>(object),
        "Secret" => through::<Secret>(object),
        "Service" => through::<Service>(object),
        "ServiceAccount" => through::<ServiceAccount>(object),
        "ValidatingAdmissionPolicy" => through::<ValidatingAdmissionPolicy>(object),
        "ValidatingAdmissionPolicyBinding" => through::<ValidatingAdmissionPolicyBinding>(object),
        "ValidatingWebhookConfiguration" => through::<ValidatingWebhookConfiguration>(object),
        other => panic!("no type for {other}"),
    }
}

#[test]
fn every_object_is_what_its_type_says() {
    for object in everything(&config()) {
        let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
        if object["kind"] == "CustomResourceDefinition" {
            through_type(&object);
        } else {
            assert_eq!(through_type(&object), object, "{name}");
        }
    }
}

#[test]
fn no_object_is_there_twice() {
    let mut seen = BTreeSet::new();
    for object in everything(&config()) {
        let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
        assert!(seen.insert(name.clone()), "{name}");
    }
}

fn hooks(configuration: &Value) -> Vec<String> {
    let kind = text(&configuration["kind"]).trim_end_matches("WebhookConfiguration");
    let words = |list: &Value| {
        let words: Vec<&str> = list.as_array().into_iter().flatten().map(text).collect();
        words.join(",")
    };
    let line = |hook: &Value| {
        let (service, rule) = (&hook["clientConfig"]["service"], &hook["rules"][0]);
        format!(
            "{kind} {} {} {} {} {} {}/{} {}",
            text(&configuration["metadata"]["name"]),
            text(&hook["name"]),
            text(&service["name"]),
            text(&service["path"]),
            words(&rule["operations"]),
            words(&rule["apiGroups"]),
            words(&rule["resources"]),
            text(&hook["failurePolicy"]),
        )
    };
    configuration["webhooks"].as_array().unwrap().iter().map(line).collect()
}

#[test]
fn webhooks_are_those_of_kubevirt() {
    let config = config();
    let found = [webhooks::validating(&config), webhooks::operator(&config), webhooks::mutating(&config)];
    let found: Vec<String> = found.iter().flat_map(hooks).collect();
    let expected: Vec<&str> = include_str!("golden/webhooks.txt").lines().collect();
    assert_eq!(found, expected);
}

#[test]
fn only_writes_of_our_own_accounts_pass_without_review() {
    let config = config();
    let ours = |name: &str| format!("'system:serviceaccount:{}:{name}'", config.namespace);
    let expression = |hooks: &serde_json::Value, name: &str| {
        let all = hooks["webhooks"].as_array().unwrap();
        let hook = all.iter().find(|hook| hook["name"] == name).unwrap();
        hook["matchConditions"][0]["expression"].as_str().unwrap().to_owned()
    };
    let mutating = expression(&webhooks::mutating(&config), "virtualmachineinstances-mutator.kubevirt.io");
    let update =
        expression(&webhooks::validating(&config), "virtualmachineinstances-update-validator.kubevirt.io");
    for expression in [&mutating, &update] {
        for account in [accounts::CONTROLLER, accounts::HANDLER] {
            assert!(expression.contains(&ours(account)), "{account}: {expression}");
        }
    }
    assert!(update.contains(NODE_OF_TOKEN), "{update}");
    assert!(![mutating, update].iter().any(|text| text.contains("OURS")));
}

#[test]
fn webhooks_hear_of_every_version() {
    let mutating = webhooks::mutating(&config());
    assert_eq!(mutating["webhooks"][0]["rules"][0]["apiVersions"], serde_json::json!(["v1", "v1alpha3"]));
    assert_eq!(
        mutating["webhooks"][3]["rules"][0]["apiVersions"],
        serde_json::json!(["v1alpha1", "v1beta1"])
    );
}

/// Each triple of group, resource and verb that a role allows.
fn allowed(role: &Value) -> BTreeSet<(String, String, String)> {
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(|one| text(one).to_owned()).collect()
    };
    let mut allowed = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in list(&rule["apiGroups"]) {
            for resource in list(&rule["resources"]) {
                for verb in list(&rule["verbs"]) {
                    allowed.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    allowed
}

fn writes(role: &Value) -> BTreeSet<String> {
    let read = ["get", "list", "watch"];
    let writes = allowed(role).into_iter().filter(|(_, _, verb)| !read.contains(&verb.as_str()));
    writes.map(|(_, resource, verb)| format!("{verb} {resource}")).collect()
}

#[test]
fn components_may_do_no_more_than_they_must() {
    let objects = all(&config());
    for account in [accounts::API, accounts::CONTROLLER, accounts::HANDLER] {
        for kind in ["ClusterRole", "Role"] {
            for (group, resource, verb) in allowed(&find(&objects, kind, account)) {
                let everything = [&group, &resource, &verb].iter().any(|word| word.contains('*'));
                assert!(!everything, "{account}: {verb} {group}/{resource}");
                assert!(!resource.starts_with("secrets"), "{account}: {verb} {resource}");
                assert!(!["impersonate", "escalate", "bind"].contains(&verb.as_str()), "{account}: {verb}");
            }
        }
    }
    let set = |words: &[&str]| -> BTreeSet<String> { words.iter().map(|word| (*word).to_owned()).collect() };
    let written = |account| writes(&find(&objects, "ClusterRole", account));
    let api = set(&[
        "create virtualmachineinstancemigrations",
        "patch virtualmachineinstances",
        "patch virtualmachines",
        "patch virtualmachines/status",
    ]);
    assert_eq!(written(accounts::API), api);
    let handler = set(&["create events", "patch events", "patch nodes", "patch virtualmachineinstances"]);
    assert_eq!(written(accounts::HANDLER), handler);
    assert!(!written(accounts::CONTROLLER).contains("delete nodes"));
}

#[test]
fn users_have_roles_for_every_kind() {
    let objects = all(&config());
    // Whoever installs the system decides on these.
    let of_the_cluster = ["kubevirts", "migrationpolicies", "plugins"];
    let may = |role: &str, kind: &str, group: &str, verb: &str| {
        let role = find(&objects, "ClusterRole", role);
        allowed(&role).contains(&(group.to_owned(), kind.to_owned(), verb.to_owned()))
    };
    for kind in KINDS {
        let view = components::user_roles::VIEW;
        assert!(may(view, kind.plural, kind.group, "get"), "view {}", kind.plural);
        let editor = match kind.plural {
            "virtualmachineinstancemigrations" => components::user_roles::MIGRATE,
            _ => components::user_roles::EDIT,
        };
        let expected = !of_the_cluster.contains(&kind.plural);
        assert_eq!(may(editor, kind.plural, kind.group, "create"), expected, "edit {}", kind.plural);
        assert!(!may(view, kind.plural, kind.group, "create"), "view {}", kind.plural);
    }
}

#[test]
fn subresources_are_for_those_whom_kubevirt_gives_them_to() {
    use components::user_roles::{ADMIN, DEFAULT, EDIT, MIGRATE, VIEW};
    let objects = all(&config());
    let (readers, writers) = (&[ADMIN, EDIT, VIEW][..], &[ADMIN, EDIT][..]);
    let cases = [
        ("virtualmachines/expand-spec", "get", readers),
        ("virtualmachines/objectgraph", "get", readers),
        ("virtualmachines/portforward", "get", writers),
        ("virtualmachines/start", "update", writers),
        ("virtualmachines/stop", "update", writers),
        ("virtualmachines/restart", "update", writers),
        ("virtualmachines/addvolume", "update", writers),
        ("virtualmachines/removevolume", "update", writers),
        ("virtualmachines/memorydump", "update", writers),
        ("virtualmachines/removememorydump", "update", writers),
        ("virtualmachines/evacuate/cancel", "update", writers),
        ("virtualmachines/migrate", "update", &[MIGRATE]),
        ("virtualmachineinstances/guestosinfo", "get", readers),
        ("virtualmachineinstances/userlist", "get", readers),
        ("virtualmachineinstances/filesystemlist", "get", readers),
        ("virtualmachineinstances/objectgraph", "get", readers),
        ("virtualmachineinstances/sev/fetchcertchain", "get", readers),
        ("virtualmachineinstances/sev/querylaunchmeasurement", "get", readers),
        ("virtualmachineinstances/sev/setupsession", "update", writers),
        ("virtualmachineinstances/sev/injectlaunchsecret", "update", writers),
        ("virtualmachineinstances/console", "get", writers),
        ("virtualmachineinstances/vnc", "get", writers),
        ("virtualmachineinstances/vnc/screenshot", "get", &[ADMIN]),
        ("virtualmachineinstances/usbredir", "get", writers),
        ("virtualmachineinstances/portforward", "get", writers),
        ("virtualmachineinstances/pause", "update", writers),
        ("virtualmachineinstances/unpause", "update", writers),
        ("virtualmachineinstances/freeze", "update", writers),
        ("virtualmachineinstances/unfreeze", "update", writers),
        ("virtualmachineinstances/reset", "update", writers),
        ("virtualmachineinstances/softreboot", "update", writers),
        ("virtualmachineinstances/addvolume", "update", writers),
        ("virtualmachineinstances/removevolume", "update", writers),
        ("virtualmachineinstances/evacuate/cancel", "update", writers),
        ("expand-vm-spec", "update", readers),
    ];
    for role in [ADMIN, EDIT, VIEW, MIGRATE, DEFAULT] {
        let everyone = ["version", "guestfs"].into_iter().flat_map(|what| [(what, "get"), (what, "list")]);
        let own =
            cases.iter().filter(|(_, _, who)| who.contains(&role)).map(|(what, verb, _)| (*what, *verb));
        let expected: BTreeSet<(String, String)> = own
            .chain(everyone.filter(|_| role == DEFAULT))
            .map(|(what, verb)| (what.to_owned(), verb.to_owned()))
            .collect();
        let found: BTreeSet<(String, String)> = allowed(&find(&objects, "ClusterRole", role))
            .into_iter()
            .filter(|(group, ..)| group == groups::SUBRESOURCES)
            .map(|(_, what, verb)| (what, verb))
            .collect();
        assert_eq!(found, expected, "{role}");
    }
}

#[test]
fn a_mount_has_a_volume_and_a_volume_its_object() {
    let objects = all(&config());
    let pods = [("Deployment", "virt-api"), ("Deployment", "virt-controller"), ("DaemonSet", "virt-handler")];
    for (kind, name) in pods {
        let pod = find(&objects, kind, name)["spec"]["template"]["spec"].clone();
        let volumes: BTreeMap<&str, &Value> =
            pod["volumes"].as_array().unwrap().iter().map(|volume| (text(&volume["name"]), volume)).collect();
        let containers = pod["containers"].as_array().unwrap().iter();
        let mut mounted = BTreeSet::new();
        for container in containers.chain(pod["initContainers"].as_array().into_iter().flatten()) {
            for mount in container["volumeMounts"].as_array().unwrap() {
                assert!(volumes.contains_key(text(&mount["name"])), "{name}: {mount}");
                mounted.insert(text(&mount["name"]).to_owned());
            }
        }
        assert_eq!(mounted.len(), volumes.len(), "{name} mounts all its volumes");
        for volume in volumes.values() {
            if let Some(secret) = volume["secret"]["secretName"].as_str() {
                find(&objects, "Secret", secret);
            }
            if let Some(map) = volume["configMap"]["name"].as_str() {
                find(&objects, "ConfigMap", map);
            }
        }
        find(&objects, "ServiceAccount", text(&pod["serviceAccountName"]));
        find(&objects, "PriorityClass", text(&pod["priorityClassName"]));
    }
}

#[test]
fn a_single_replica_has_no_budget() {
    let of = |replicas| {
        let config = InstallConfig { replicas, ..config() };
        all(&config).iter().filter(|object| object["kind"] == "PodDisruptionBudget").count()
    };
    assert_eq!([of(0), of(1), of(2), of(3)], [0, 0, 2, 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_installation_is_whole(
        namespace in "[a-z][a-z0-9-]{0,20}[a-z]",
        image in "[a-z]{1,9}(:[a-z0-9]{1,5})?",
        replicas: u8,
        verbosity: u8,
        api_services: bool,
    ) {
        let images = Images { components: image.clone(), ..config().images };
        let config = InstallConfig { namespace: namespace.clone(), images, replicas, verbosity, api_services, ..config() };
        let objects = all(&config);
        prop_assert_eq!(&objects[0]["metadata"]["name"], &namespace);
        for object in &objects {
            prop_assert_eq!(&through_type(object), object);
            let inside = &object["metadata"]["namespace"];
            prop_assert!(inside.is_null() || *inside == namespace.as_str(), "{}", object);
        }
        let users = find(&objects, "ClusterRoleBinding", accounts::HANDLER);
        prop_assert_eq!(&users["subjects"][0]["namespace"], &namespace);
        let api = find(&objects, "Deployment", components::API);
        prop_assert_eq!(&api["spec"]["template"]["spec"]["containers"][0]["image"], &image);
    }
}
