//! What is served, as OpenAPI describes it in its versions 2 and 3.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use kubevirt_api::version::VERSION;
use serde_json::{Map, Value, json};

use super::routes::{Action, GROUPS, Group, ROUTES, Route};

const ROOT: &str = "/openapi/v3";

/// The whole of version 2.
static V2: LazyLock<Value> = LazyLock::new(|| {
    let all =
        GROUPS.into_iter().flat_map(|group| group.versions.iter().map(move |version| (group, *version)));
    let paths: Map<_, _> = all.flat_map(|(group, version)| paths(group, version, Style::V2)).collect();
    json!({ "swagger": "2.0", "info": info(), "paths": paths, "definitions": {} })
});

/// The documents of version 3 by their paths, one for each version of a group.
static V3: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
    let all =
        GROUPS.into_iter().flat_map(|group| group.versions.iter().map(move |version| (group, *version)));
    all.map(|(group, version)| {
        let paths: Map<_, _> = paths(group, version, Style::V3).collect();
        let document =
            json!({ "openapi": "3.0.0", "info": info(), "paths": paths, "components": { "schemas": {} } });
        (format!("apis/{}/{version}", group.name), document)
    })
    .collect()
});

/// Where the documents of version 3 are.
static V3_ROOT: LazyLock<Value> = LazyLock::new(|| {
    let entry = |(path, document): &(String, Value)| {
        let mut hasher = DefaultHasher::new();
        document.to_string().hash(&mut hasher);
        let address = format!("{ROOT}/{path}?hash={:016X}", hasher.finish());
        (path.clone(), json!({ "serverRelativeURL": address }))
    };
    json!({ "paths": V3.iter().map(entry).collect::<Map<_, _>>() })
});

/// The document of this path, if it is one of OpenAPI.
pub fn document(path: &str) -> Option<&'static Value> {
    match path {
        "/openapi/v2" => Some(&V2),
        ROOT => Some(&V3_ROOT),
        _ => {
            let wanted = path.strip_prefix(ROOT)?.strip_prefix('/')?;
            V3.iter().find(|(path, _)| path == wanted).map(|(_, document)| document)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    V2,
    V3,
}

fn info() -> Value {
    json!({
        "title": "Subresources of virtual machines",
        "description": "Actions on virtual machines and ways into them.",
        "version": VERSION,
    })
}

/// The routes of a version by their paths. No two have the same.
fn paths(
    group: &'static Group,
    version: &'static str,
    style: Style,
) -> impl Iterator<Item = (String, Value)> {
    ROUTES.iter().filter(move |route| route.on.group() == group).map(move |route| {
        let method = route.method.method().to_ascii_lowercase();
        let mut item = json!({ method: operation(route, version, style) });
        item["parameters"] =
            route.path_parameters().map(|name| style.parameter(name, "path", "string", true, "")).collect();
        (route.template(version), item)
    })
}

fn operation(route: &Route, version: &str, style: Style) -> Value {
    let mut operation = json!({
        "operationId": format!("{version}{}", route.operation),
        "description": route.about,
        "responses": responses(route, style),
    });
    let query =
        route.query.iter().map(|it| style.parameter(it.name, "query", it.kind, it.required, it.about));
    let mut parameters: Vec<Value> = query.collect();
    if let Some(schema) = route.body {
        match style {
            Style::V2 => {
                parameters.push(json!({ "name": "body", "in": "body", "schema": schema() }));
                operation["consumes"] = json!(["*/*"]);
            }
            Style::V3 => operation["requestBody"] = json!({ "content": { "*/*": { "schema": schema() } } }),
        }
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if style == Style::V2 {
        operation["produces"] = json!([media(route)]);
    }
    operation
}

fn responses(route: &Route, style: Style) -> Value {
    let mut good = json!({ "description": "OK" });
    if style == Style::V3 {
        good["content"] = json!({ media(route): {} });
    }
    let code = match route.action {
        Action::Line(_) | Action::PortForward => "101",
        _ => "200",
    };
    json!({
        code: good,
        "401": { "description": "Unauthorized" },
        "403": { "description": "Forbidden" },
        "404": { "description": "Not Found" },
        "409": { "description": "Conflict" },
        "500": { "description": "Internal Server Error" },
    })
}

fn media(route: &Route) -> &'static str {
    if route.path == "vnc/screenshot" { "image/png" } else { "application/json" }
}

impl Style {
    fn parameter(self, name: &str, place: &str, kind: &str, required: bool, about: &str) -> Value {
        let mut parameter = json!({ "name": name, "in": place, "required": required });
        if !about.is_empty() {
            parameter["description"] = about.into();
        }
        match self {
            Self::V2 => parameter["type"] = kind.into(),
            Self::V3 => parameter["schema"] = json!({ "type": kind }),
        }
        parameter
    }
}

impl Route {
    /// The names of the parameters of its path.
    fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        let own = self.path.split('/').filter_map(|word| word.strip_prefix('{')?.strip_suffix('}'));
        let of_object: &[&str] = match (self.on.resource(), self.open()) {
            (Some(_), _) => &["namespace", "name"],
            (None, true) => &[],
            (None, false) => &["namespace"],
        };
        of_object.iter().copied().chain(own)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_is_described_in_both_versions() {
        let v2 = document("/openapi/v2").unwrap();
        let mut operations = BTreeSet::new();
        for route in ROUTES {
            for version in route.on.group().versions {
                let path = route.template(version);
                let method = route.method.method().to_ascii_lowercase();
                let v3 = document(&format!("/openapi/v3/apis/{}/{version}", route.on.group().name)).unwrap();
                for document in [v2, v3] {
                    let item = &document["paths"][&path];
                    assert_eq!(item[&method]["description"], route.about, "{path}");
                    let named = item["parameters"].as_array().unwrap().iter();
                    let named: Vec<_> =
                        named.map(|it| format!("{{{}}}", it["name"].as_str().unwrap())).collect();
                    assert!(
                        named.iter().all(|name| path.contains(name))
                            && path.matches('{').count() == named.len()
                    );
                }
                operations.insert(v2["paths"][&path][&method]["operationId"].as_str().unwrap());
            }
        }
        assert_eq!(operations.len(), ROUTES.len() * 2);
    }

    #[test]
    fn the_root_leads_to_every_document() {
        let root = document("/openapi/v3").unwrap();
        let paths = root["paths"].as_object().unwrap();
        assert_eq!(paths.len(), 4);
        for entry in paths.values() {
            let address = entry["serverRelativeURL"].as_str().unwrap();
            assert!(document(address.split('?').next().unwrap()).is_some(), "{address}");
        }
        assert!(document("/openapi/v3/").is_none() && document("/openapi/v4").is_none());
    }
}
