//! What clients and the aggregator read to learn what is served.

use serde_json::{Value, json};

use super::routes::{GROUPS, Group, ROUTES, Route};

/// The document of this path, if it is one of discovery.
pub fn document(path: &str) -> Option<Value> {
    let path = if path == "/" { path } else { path.trim_end_matches('/') };
    match path {
        "/" => Some(json!({ "paths": paths() })),
        "/apis" => Some(json!({
            "kind": "APIGroupList", "apiVersion": "v1", "groups": GROUPS.map(|group| without_kind(about(group))),
        })),
        _ => {
            let rest = path.strip_prefix("/apis/")?;
            let find = |name: &str| GROUPS.into_iter().find(|group| group.name == name);
            match rest.split_once('/') {
                None => find(rest).map(about),
                Some((group, version)) => {
                    let group = find(group)?;
                    group.versions.contains(&version).then(|| resources(group, version))
                }
            }
        }
    }
}

fn paths() -> Vec<String> {
    let mut paths = vec!["/apis".to_owned(), "/openapi/v2".to_owned(), "/openapi/v3".to_owned()];
    for group in GROUPS {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(group.versions.iter().map(|version| format!("/apis/{}/{version}", group.name)));
    }
    paths
}

fn about(group: &Group) -> Value {
    let version =
        |version: &&str| json!({ "groupVersion": format!("{}/{version}", group.name), "version": version });
    json!({
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": group.name,
        "versions": group.versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": group.versions.first().map(version),
        "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": "" }],
    })
}

fn without_kind(mut group: Value) -> Value {
    if let Some(fields) = group.as_object_mut() {
        fields.retain(|name, _| name != "kind" && name != "apiVersion");
    }
    group
}

/// KubeVirt lists only some of what it serves, without kinds and verbs, and clients are used to that.
fn resources(group: &Group, version: &str) -> Value {
    let listed = ROUTES.iter().filter(|route| route.listed && route.on.group() == group);
    let resource = |route: &Route| json!({ "name": listed_name(route), "singularName": "", "namespaced": true, "kind": "", "verbs": [] });
    json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": format!("{}/{version}", group.name),
        "resources": listed.map(resource).collect::<Vec<_>>(),
    })
}

/// How discovery names a route.
fn listed_name(route: &Route) -> String {
    match route.on.resource() {
        Some(resource) => format!("{resource}/{}", route.subresource()),
        None => route.subresource().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What KubeVirt v1.9 lists, in its order.
    const LISTED: &str = "expand-vm-spec virtualmachineinstances/vnc virtualmachineinstances/vnc/screenshot \
        virtualmachineinstances/console virtualmachineinstances/portforward virtualmachineinstances/backup \
        virtualmachineinstances/redefine-checkpoint virtualmachineinstances/pause virtualmachineinstances/unpause \
        virtualmachineinstances/freeze virtualmachineinstances/unfreeze virtualmachineinstances/reset \
        virtualmachineinstances/softreboot virtualmachines/start virtualmachines/stop virtualmachines/restart \
        virtualmachines/migrate virtualmachines/expand-spec virtualmachines/objectgraph \
        virtualmachines/evacuate/cancel virtualmachineinstances/guestosinfo virtualmachineinstances/userlist \
        virtualmachineinstances/filesystemlist virtualmachineinstances/addvolume \
        virtualmachineinstances/removevolume virtualmachineinstances/objectgraph \
        virtualmachineinstances/sev/fetchcertchain virtualmachineinstances/sev/querylaunchmeasurement \
        virtualmachineinstances/sev/setupsession virtualmachineinstances/sev/injectlaunchsecret \
        virtualmachineinstances/evacuate/cancel";

    fn names(document: &Value) -> Vec<String> {
        let resources = document["resources"].as_array().unwrap();
        resources.iter().map(|resource| resource["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn both_versions_list_what_kubevirt_lists() {
        for version in ["v1", "v1alpha3"] {
            let list = document(&format!("/apis/subresources.kubevirt.io/{version}")).unwrap();
            assert_eq!(list["groupVersion"], format!("subresources.kubevirt.io/{version}"));
            assert_eq!(names(&list), LISTED.split_whitespace().collect::<Vec<_>>());
        }
        let templates = document("/apis/subresources.template.kubevirt.io/v1alpha1/").unwrap();
        assert_eq!(names(&templates), ["virtualmachinetemplates/process", "virtualmachinetemplates/create"]);
    }

    #[test]
    fn every_path_that_the_root_names_is_there() {
        let root = document("/").unwrap();
        let paths: BTreeSet<_> =
            root["paths"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        for path in paths.into_iter().filter(|path| path.starts_with("/apis")) {
            assert!(document(path).is_some(), "{path}");
        }
        let groups = document("/apis").unwrap();
        assert_eq!(groups["groups"][0]["preferredVersion"]["groupVersion"], "subresources.kubevirt.io/v1");
        assert!(document("/apis/kubevirt.io").is_none() && document("/api").is_none());
    }
}
