//! What users may do: roles that add to those of the cluster.

use kubevirt_api::names::components::user_roles::{ADMIN, DEFAULT, EDIT, INSTANCETYPE_VIEW, MIGRATE, VIEW};
use kubevirt_api::names::external::kubernetes::{
    AGGREGATE_TO_ADMIN, AGGREGATE_TO_EDIT, AGGREGATE_TO_VIEW, BOOTSTRAPPING, RBAC_AUTOUPDATE,
};
use kubevirt_api::names::groups;
use serde_json::{Value, json};

use super::rules::{READ, Rule};
use super::{binding, role};
use crate::objects::metadata;

const GET: &[&str] = &["get"];
const LOOK: &[&str] = &["get", "list"];
const UPDATE: &[&str] = &["update"];
const EDIT_ALL: &[&str] = &["get", "delete", "create", "update", "patch", "list", "watch"];
const ADMINISTER: &[&str] =
    &["get", "delete", "create", "update", "patch", "list", "watch", "deletecollection"];

/// Kinds of which users have objects of their own.
const KINDS: [(&str, &[&str]); 8] = [
    (
        groups::KUBEVIRT,
        &[
            "virtualmachines",
            "virtualmachineinstances",
            "virtualmachineinstancepresets",
            "virtualmachineinstancereplicasets",
        ],
    ),
    (
        groups::SNAPSHOT,
        &["virtualmachinesnapshots", "virtualmachinesnapshotcontents", "virtualmachinerestores"],
    ),
    (groups::BACKUP, &["virtualmachinebackups", "virtualmachinebackuptrackers"]),
    (groups::EXPORT, &["virtualmachineexports"]),
    (groups::CLONE, &["virtualmachineclones"]),
    (
        groups::INSTANCETYPE,
        &[
            "virtualmachineinstancetypes",
            "virtualmachineclusterinstancetypes",
            "virtualmachinepreferences",
            "virtualmachineclusterpreferences",
        ],
    ),
    (groups::POOL, &["virtualmachinepools"]),
    (groups::TEMPLATE, &["virtualmachinetemplates", "virtualmachinetemplaterequests"]),
];

/// Questions that anybody may ask who sees the machine.
const QUESTIONS: Rule = Rule::new(
    groups::SUBRESOURCES,
    &[
        "virtualmachines/expand-spec",
        "virtualmachines/objectgraph",
        "virtualmachineinstances/guestosinfo",
        "virtualmachineinstances/filesystemlist",
        "virtualmachineinstances/userlist",
        "virtualmachineinstances/objectgraph",
        "virtualmachineinstances/sev/fetchcertchain",
        "virtualmachineinstances/sev/querylaunchmeasurement",
    ],
    GET,
);

/// Ways into a guest.
const CONNECTIONS: Rule = Rule::new(
    groups::SUBRESOURCES,
    &[
        "virtualmachines/portforward",
        "virtualmachineinstances/console",
        "virtualmachineinstances/portforward",
        "virtualmachineinstances/usbredir",
        "virtualmachineinstances/vnc",
    ],
    GET,
);

/// A look at what a guest shows, which its viewers do not notice.
const SCREENSHOT: Rule = Rule::new(groups::SUBRESOURCES, &["virtualmachineinstances/vnc/screenshot"], GET);

/// What is done to a machine.
const ACTIONS: Rule = Rule::new(
    groups::SUBRESOURCES,
    &[
        "virtualmachines/start",
        "virtualmachines/stop",
        "virtualmachines/restart",
        "virtualmachines/addvolume",
        "virtualmachines/removevolume",
        "virtualmachines/memorydump",
        "virtualmachines/removememorydump",
        "virtualmachines/evacuate/cancel",
        "virtualmachineinstances/pause",
        "virtualmachineinstances/unpause",
        "virtualmachineinstances/addvolume",
        "virtualmachineinstances/removevolume",
        "virtualmachineinstances/freeze",
        "virtualmachineinstances/unfreeze",
        "virtualmachineinstances/softreboot",
        "virtualmachineinstances/reset",
        "virtualmachineinstances/sev/setupsession",
        "virtualmachineinstances/sev/injectlaunchsecret",
        "virtualmachineinstances/evacuate/cancel",
    ],
    UPDATE,
);

const EXPAND: Rule = Rule::new(groups::SUBRESOURCES, &["expand-vm-spec"], UPDATE);
const INSTALLATION: Rule = Rule::new(groups::KUBEVIRT, &["kubevirts"], LOOK);
const POLICIES: Rule = Rule::new(groups::MIGRATIONS, &["migrationpolicies"], READ);
const MIGRATIONS: [&str; 1] = ["virtualmachineinstancemigrations"];

/// All roles of users, with bindings for what everyone may do.
pub(super) fn all() -> Vec<Value> {
    vec![
        role("ClusterRole", aggregated(ADMIN, AGGREGATE_TO_ADMIN), &admin()),
        role("ClusterRole", aggregated(EDIT, AGGREGATE_TO_EDIT), &edit()),
        role("ClusterRole", aggregated(VIEW, AGGREGATE_TO_VIEW), &view()),
        role("ClusterRole", metadata::global(MIGRATE), &migrate()),
        role("ClusterRole", for_everyone(DEFAULT), &default()),
        to_everyone(DEFAULT),
        role("ClusterRole", metadata::global(INSTANCETYPE_VIEW), &instance_types()),
        to_everyone(INSTANCETYPE_VIEW),
    ]
}

fn on_kinds(verbs: &'static [&'static str]) -> impl Iterator<Item = Rule> {
    KINDS.into_iter().map(move |(group, resources)| Rule::new(group, resources, verbs))
}

fn admin() -> Vec<Rule> {
    let plugins = Rule::new(groups::PLUGIN, &["plugins"], ADMINISTER);
    let migrations = Rule::new(groups::KUBEVIRT, &MIGRATIONS, READ);
    let others = [QUESTIONS, CONNECTIONS, SCREENSHOT, ACTIONS, EXPAND, POLICIES, plugins, migrations];
    on_kinds(ADMINISTER).chain(others).collect()
}

fn edit() -> Vec<Rule> {
    let migrations = Rule::new(groups::KUBEVIRT, &MIGRATIONS, READ);
    let others = [QUESTIONS, CONNECTIONS, ACTIONS, EXPAND, POLICIES, INSTALLATION, migrations];
    on_kinds(EDIT_ALL).chain(others).collect()
}

fn view() -> Vec<Rule> {
    let plugins = Rule::new(groups::PLUGIN, &["plugins"], READ);
    let migrations = Rule::new(groups::KUBEVIRT, &MIGRATIONS, READ);
    on_kinds(READ).chain([QUESTIONS, EXPAND, POLICIES, INSTALLATION, plugins, migrations]).collect()
}

fn migrate() -> Vec<Rule> {
    vec![
        Rule::new(groups::SUBRESOURCES, &["virtualmachines/migrate"], UPDATE),
        Rule::new(groups::KUBEVIRT, &MIGRATIONS, ADMINISTER),
    ]
}

fn default() -> Vec<Rule> {
    vec![INSTALLATION, Rule::new(groups::SUBRESOURCES, &["version", "guestfs"], LOOK)]
}

fn instance_types() -> Vec<Rule> {
    let resources = &["virtualmachineclusterinstancetypes", "virtualmachineclusterpreferences"];
    vec![Rule::new(groups::INSTANCETYPE, resources, READ)]
}

fn aggregated(name: &str, to: &str) -> Value {
    let mut metadata = metadata::global(name);
    metadata["labels"][to] = "true".into();
    metadata
}

fn for_everyone(name: &str) -> Value {
    let mut metadata = metadata::global(name);
    metadata["labels"][BOOTSTRAPPING] = "rbac-defaults".into();
    metadata["annotations"] = json!({ RBAC_AUTOUPDATE: "true" });
    metadata
}

fn to_everyone(name: &str) -> Value {
    let mut metadata = metadata::global(name);
    metadata["annotations"] = json!({ RBAC_AUTOUPDATE: "true" });
    let everyone =
        json!({ "kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:authenticated" });
    binding("ClusterRoleBinding", metadata, "ClusterRole", name, &everyone)
}
