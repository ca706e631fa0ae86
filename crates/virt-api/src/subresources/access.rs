//! Who asks, and what they may do: what the aggregator says of them, and what the API server allows them.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kubevirt_component::serve::Peer;
use serde_json::json;

use super::failure::Failure;
use super::routes::Matched;

/// How the aggregator shows that it is the aggregator, and how it says who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregator {
    /// Whom its certificate must be from, as PEM.
    pub authorities: String,
    /// What its certificate must be named; anything if there is none.
    pub names: Vec<String>,
    users: Vec<String>,
    groups: Vec<String>,
    extra: Vec<String>,
}

impl Default for Aggregator {
    /// As it is where the API server says nothing else. Nobody is believed.
    fn default() -> Self {
        let one = |header: &str| vec![header.to_owned()];
        Self {
            authorities: String::new(),
            names: Vec::new(),
            users: one("x-remote-user"),
            groups: one("x-remote-group"),
            extra: one("x-remote-extra-"),
        }
    }
}

impl Aggregator {
    /// What the API server's ConfigMap says.
    pub fn of(data: &BTreeMap<String, String>) -> Self {
        let list = |key: &str| -> Option<Vec<String>> {
            let text = data.get(key).filter(|text| !text.is_empty())?;
            let words: Option<Vec<String>> = serde_json::from_str(text).ok();
            if words.is_none() {
                tracing::warn!(key, "is not a list, and does not count");
            }
            words
        };
        let headers = |key: &str, usual: &str| {
            let mut names: Vec<_> =
                list(key).unwrap_or_default().iter().map(|name| name.to_ascii_lowercase()).collect();
            if names.is_empty() {
                names.push(usual.to_owned());
            }
            names
        };
        Self {
            authorities: data.get("requestheader-client-ca-file").cloned().unwrap_or_default(),
            names: list("requestheader-allowed-names").unwrap_or_default(),
            users: headers("requestheader-username-headers", "x-remote-user"),
            groups: headers("requestheader-group-headers", "x-remote-group"),
            extra: headers("requestheader-extra-headers-prefix", "x-remote-extra-"),
        }
    }

    /// Who asks. The server has verified the certificate; only the aggregator has one from its authority.
    pub fn user(&self, peer: Option<&Peer>, headers: &HeaderMap) -> Result<User, Failure> {
        let known = peer.filter(|peer| !peer.certificates.is_empty());
        let known = known.ok_or_else(|| Failure::unauthorized("request is not authenticated"))?;
        if !self.names.is_empty() {
            let name = known.common_name().unwrap_or_default();
            if !self.names.contains(&name) {
                let why = format!("request is not authenticated: {name:?} does not speak for others");
                return Err(Failure::unauthorized(&why));
            }
        }
        self.claimed(headers)
    }

    /// Who the headers say that it is.
    fn claimed(&self, headers: &HeaderMap) -> Result<User, Failure> {
        let values = |name: &String| -> Vec<String> {
            let all = headers.get_all(name.as_str()).iter();
            all.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
        };
        let first = |names: &[String]| names.iter().map(values).find(|found| !found.is_empty());
        let name =
            first(&self.users).and_then(|found| found.into_iter().next()).filter(|name| !name.is_empty());
        let name =
            name.ok_or_else(|| Failure::unauthorized("a valid user header is required for authorization"))?;
        let groups = first(&self.groups);
        let groups = groups
            .ok_or_else(|| Failure::unauthorized("a valid group header is required for authorization"))?;
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (header, value) in headers {
            let key = self.extra.iter().find_map(|prefix| header.as_str().strip_prefix(prefix.as_str()));
            if let Some(key) = key {
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                extra.entry(percent_decoded(key)).or_default().push(value);
            }
        }
        Ok(User { name, groups, extra })
    }
}

/// Text with `%xx` replaced by what it means; what is no such text stays as it is.
pub fn percent_decoded(text: &str) -> String {
    decoded(text).unwrap_or_else(|| text.to_owned())
}

/// The same, or none for what is no such text.
pub fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What else is known.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The question to the API server whether a user may do it.
pub fn review(user: &User, matched: &Matched) -> SubjectAccessReview {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let route = matched.route;
    let (resource, subresource) = match route.on.resource() {
        Some(resource) => (resource, Some(route.subresource().to_owned())),
        None => (route.subresource(), None),
    };
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(user.name.clone()),
            groups: Some(user.groups.clone()),
            extra: Some(user.extra.clone()),
            resource_attributes: Some(ResourceAttributes {
                namespace: some(&matched.namespace),
                verb: Some(route.method.right().to_owned()),
                group: Some(route.on.group().name.to_owned()),
                version: Some(matched.version.to_owned()),
                resource: Some(resource.to_owned()),
                subresource,
                name: some(&matched.name),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}

/// The answer to a user who may not, in the words of the API server.
pub fn denied(user: &User, matched: &Matched, why: Option<&str>) -> Failure {
    let route = matched.route;
    let group = route.on.group().name;
    let (resource, whole) = match route.on.resource() {
        Some(resource) => (resource, format!("{resource}/{}", route.subresource())),
        None => (route.subresource(), route.subresource().to_owned()),
    };
    let mut message = format!(
        "{resource}.{group} {:?} is forbidden: User {:?} cannot {} resource {whole:?} in API group {group:?} in the \
         namespace {:?}",
        matched.name,
        user.name,
        route.method.right(),
        matched.namespace,
    );
    if let Some(why) = why.filter(|why| !why.is_empty()) {
        message = format!("{message}: {why}");
    }
    Failure::denied(message, json!({ "group": group, "kind": resource, "name": matched.name }))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;
    use crate::subresources::routes::find;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn headers_say_who_asks() {
        let lines = [
            ("X-Remote-User", "jane"),
            ("X-Remote-Group", "dev"),
            ("X-Remote-Group", "ops"),
            ("X-Remote-Extra-scopes", "a"),
            ("X-Remote-Extra-acme.com%2fproject", "p"),
            ("Authorization", "Bearer x"),
        ];
        let user = Aggregator::default().claimed(&headers(&lines)).unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups.as_slice()),
            ("jane", &["dev".to_owned(), "ops".into()][..])
        );
        let keys: Vec<_> = user.extra.keys().map(String::as_str).collect();
        assert_eq!(keys, ["acme.com/project", "scopes"]);
        for missing in [&lines[1..3], &lines[..1], &[("X-Remote-User", ""), ("X-Remote-Group", "a")]] {
            assert_eq!(Aggregator::default().claimed(&headers(missing)).unwrap_err().code, 401);
        }
    }

    #[test]
    fn the_api_server_may_name_other_headers() {
        let data = BTreeMap::from([
            ("requestheader-username-headers".to_owned(), r#"["X-User","X-Remote-User"]"#.to_owned()),
            ("requestheader-group-headers".to_owned(), "not a list".to_owned()),
            ("requestheader-allowed-names".to_owned(), r#"["front"]"#.to_owned()),
        ]);
        let aggregator = Aggregator::of(&data);
        assert_eq!(aggregator.names, ["front"]);
        let user =
            aggregator.claimed(&headers(&[("x-user", "a"), ("x-remote-user", "b"), ("x-remote-group", "g")]));
        assert_eq!(user.unwrap().name, "a");
    }

    #[test]
    fn without_a_certificate_headers_are_a_forgery() {
        let lines = headers(&[("X-Remote-User", "system:admin"), ("X-Remote-Group", "system:masters")]);
        assert_eq!(Aggregator::default().user(None, &lines).unwrap_err().code, 401);
        let peer = Peer { address: "127.0.0.1:1".parse().unwrap(), certificates: [].into() };
        assert_eq!(Aggregator::default().user(Some(&peer), &lines).unwrap_err().code, 401);
    }

    fn attributes(method: &str, path: &str) -> ResourceAttributes {
        let user = User { name: "u".into(), groups: vec![], extra: BTreeMap::new() };
        review(&user, &find(method, path).unwrap()).spec.resource_attributes.unwrap()
    }

    #[test]
    fn rights_are_those_of_the_route() {
        let base = "/apis/subresources.kubevirt.io/v1/namespaces/a";
        let cases = [
            ("PUT", "virtualmachines/b/start", "update", "virtualmachines", Some("start"), Some("b")),
            (
                "PUT",
                "virtualmachines/b/evacuate/cancel",
                "update",
                "virtualmachines",
                Some("evacuate/cancel"),
                Some("b"),
            ),
            (
                "GET",
                "virtualmachineinstances/b/console",
                "get",
                "virtualmachineinstances",
                Some("console"),
                Some("b"),
            ),
            (
                "GET",
                "virtualmachineinstances/b/portforward/22/tcp",
                "get",
                "virtualmachineinstances",
                Some("portforward"),
                Some("b"),
            ),
            (
                "GET",
                "virtualmachineinstances/b/vnc/screenshot",
                "get",
                "virtualmachineinstances",
                Some("vnc/screenshot"),
                Some("b"),
            ),
            ("PUT", "expand-vm-spec", "update", "expand-vm-spec", None, None),
        ];
        for (method, path, verb, resource, subresource, name) in cases {
            let found = attributes(method, &format!("{base}/{path}"));
            assert_eq!(found.verb.as_deref(), Some(verb), "{path}");
            assert_eq!(found.resource.as_deref(), Some(resource), "{path}");
            assert_eq!((found.subresource.as_deref(), found.name.as_deref()), (subresource, name), "{path}");
            assert_eq!(found.namespace.as_deref(), Some("a"));
            assert_eq!(found.group.as_deref(), Some("subresources.kubevirt.io"));
        }
    }

    #[test]
    fn a_refusal_is_in_the_words_of_the_api_server() {
        let user = User { name: "jane".into(), groups: vec![], extra: BTreeMap::new() };
        let path = "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines/b/start";
        let failure = denied(&user, &find("PUT", path).unwrap(), None);
        assert_eq!(failure.code, 403);
        assert_eq!(
            failure.message,
            "virtualmachines.subresources.kubevirt.io \"b\" is forbidden: User \"jane\" cannot update resource \
             \"virtualmachines/start\" in API group \"subresources.kubevirt.io\" in the namespace \"a\""
        );
    }
}
