//! Everything that is served, in one table: it drives the router, discovery, OpenAPI and who may do what.

mod table;

use kubevirt_api::names::groups;
use serde_json::Value;

use super::access::decoded;
pub use table::ROUTES;

/// An API group and its versions, the preferred one first.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    /// The name.
    pub name: &'static str,
    /// The versions.
    pub versions: &'static [&'static str],
}

/// Actions on machines and instances.
pub const MACHINES: Group = Group { name: groups::SUBRESOURCES, versions: &["v1", "v1alpha3"] };
/// Actions on templates.
pub const TEMPLATES: Group =
    Group { name: groups::TEMPLATE_SUBRESOURCES, versions: &["v1alpha1", "v1beta1"] };
/// All of them.
pub const GROUPS: [&Group; 2] = [&MACHINES, &TEMPLATES];

/// The methods that are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `GET`
    Get,
    /// `PUT`
    Put,
    /// `POST`
    Post,
}

impl Verb {
    /// As HTTP names it.
    pub fn method(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
        }
    }

    /// As roles name it.
    pub fn right(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "update",
            Self::Post => "create",
        }
    }
}

/// What a route is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The installation.
    Installation,
    /// A namespace.
    Namespace,
    /// A virtual machine.
    Machine,
    /// An instance.
    Instance,
    /// A template.
    Template,
}

impl On {
    /// The group that it is served in.
    pub fn group(self) -> &'static Group {
        if self == Self::Template { &TEMPLATES } else { &MACHINES }
    }

    /// The plural of the kind; none where there is no object.
    pub fn resource(self) -> Option<&'static str> {
        match self {
            Self::Installation | Self::Namespace => None,
            Self::Machine => Some("virtualmachines"),
            Self::Instance => Some("virtualmachineinstances"),
            Self::Template => Some("virtualmachinetemplates"),
        }
    }
}

/// What is done to an instance by its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Holds the guest's CPUs.
    Pause,
    /// Lets them go on.
    Unpause,
    /// Holds the guest's file systems.
    Freeze,
    /// Lets them go on.
    Unfreeze,
    /// As by the reset button.
    Reset,
    /// As by the guest itself.
    SoftReboot,
    /// Begins, pulls or ends a backup.
    Backup,
    /// Tells of a checkpoint that was made before.
    RedefineCheckpoint,
    /// Gives the guest a secret.
    InjectLaunchSecret,
}

/// What a node tells of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// What the guest agent knows.
    GuestOsInfo,
    /// Who is logged in.
    UserList,
    /// What is mounted.
    FilesystemList,
    /// What the screen shows.
    Screenshot,
    /// Who the host is.
    FetchCertChain,
    /// What was loaded into the guest.
    QueryLaunchMeasurement,
}

/// A stream between a client and an instance, by way of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The serial console.
    Console,
    /// The screen.
    Vnc,
    /// USB devices of the client.
    UsbRedir,
    /// A port of the guest's vsock.
    Vsock,
}

/// What is done with a profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profiler {
    /// It begins.
    Start,
    /// It ends.
    Stop,
    /// Its results are given out.
    Dump,
}

/// What a route does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Start,
    Stop,
    Restart,
    Migrate,
    ExpandSpec,
    ExpandVmSpec,
    ObjectGraph,
    EvacuateCancel,
    PortForward,
    AddVolume,
    RemoveVolume,
    MemoryDump,
    RemoveMemoryDump,
    SetupSession,
    Order(Order),
    Question(Question),
    Line(Line),
    Version,
    Guestfs,
    Health,
    Profiler(Profiler),
    Template,
}

/// A parameter of a query.
#[derive(Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// What it is for.
    pub about: &'static str,
}

/// One route.
#[derive(Debug)]
pub struct Route {
    /// The method.
    pub method: Verb,
    /// What it is about.
    pub on: On,
    /// What follows the object, with parameters as `{name}`.
    pub path: &'static str,
    /// What it does.
    pub action: Action,
    /// Whether discovery lists it.
    pub listed: bool,
    /// Its name in OpenAPI, after the version.
    pub operation: &'static str,
    /// What it does, in words.
    pub about: &'static str,
    /// The schema of the body.
    pub body: Option<fn() -> Value>,
    /// What the query may hold.
    pub query: &'static [Parameter],
}

impl Route {
    /// Whether everybody may ask, also somebody whom nobody knows.
    pub fn open(&self) -> bool {
        self.on == On::Installation
    }

    /// The words of its path that name it to roles and discovery: without parameters.
    pub fn subresource(&self) -> &'static str {
        self.path.split_once("/{").map_or(self.path, |(name, _)| name)
    }

    /// The whole path in a version, with parameters as `{name}`.
    pub fn template(&self, version: &str) -> String {
        let base = format!("/apis/{}/{version}", self.on.group().name);
        match self.on.resource() {
            Some(resource) => format!("{base}/namespaces/{{namespace}}/{resource}/{{name}}/{}", self.path),
            None if self.on == On::Namespace => format!("{base}/namespaces/{{namespace}}/{}", self.path),
            None => format!("{base}/{}", self.path),
        }
    }
}

/// A route that a request is for.
#[derive(Debug)]
pub struct Matched {
    /// The route.
    pub route: &'static Route,
    /// The version that was asked for.
    pub version: &'static str,
    /// The namespace, empty if the route has none.
    pub namespace: String,
    /// The object, empty if the route has none.
    pub name: String,
    /// The parameters after it, in order.
    pub parameters: Vec<String>,
}

/// Why a request is for no route.
#[derive(Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// Nothing is served there.
    Path,
    /// Something is, by this other method.
    Method(&'static str),
}

/// The route that a request is for.
pub fn find(method: &str, path: &str) -> Result<Matched, NoRoute> {
    let words: Vec<&str> = path.strip_prefix('/').ok_or(NoRoute::Path)?.split('/').collect();
    let mut other = NoRoute::Path;
    for route in ROUTES {
        if let Some(matched) = route.matches(&words) {
            if route.method.method() == method {
                return Ok(matched);
            }
            other = NoRoute::Method(route.method.method());
        }
    }
    Err(other)
}

impl Route {
    fn matches(&'static self, words: &[&str]) -> Option<Matched> {
        let ["apis", group, version, rest @ ..] = words else { return None };
        let own = self.on.group();
        let version = own.versions.iter().find(|known| *group == own.name && *known == version)?;
        let (namespace, name, rest) = match (self.on.resource(), rest) {
            (Some(resource), ["namespaces", namespace, kind, name, rest @ ..]) if *kind == resource => {
                (*namespace, *name, rest)
            }
            (None, ["namespaces", namespace, rest @ ..]) if self.on == On::Namespace => {
                (*namespace, "", rest)
            }
            (None, rest) if self.on == On::Installation => ("", "", rest),
            _ => return None,
        };
        let parameters = parameters(self.path, rest)?;
        let named = |word: &str, wanted: bool| if wanted { name_in_path(word) } else { Some(String::new()) };
        let namespace = named(namespace, self.on != On::Installation)?;
        let name = named(name, self.on.resource().is_some())?;
        Some(Matched { route: self, version, namespace, name, parameters })
    }
}

/// The name that a word of a path stands for. Whether anything can have this name is for those to say who look for it.
fn name_in_path(word: &str) -> Option<String> {
    let name = decoded(word)?;
    let leads_elsewhere = matches!(name.as_str(), "" | "." | "..") || name.contains('/');
    (!leads_elsewhere).then_some(name)
}

/// What stands in a path for the parameters of a template, if it is one of its paths.
fn parameters(template: &str, words: &[&str]) -> Option<Vec<String>> {
    let wanted: Vec<&str> = template.split('/').collect();
    if wanted.len() != words.len() {
        return None;
    }
    let mut found = Vec::new();
    for (wanted, word) in wanted.into_iter().zip(words) {
        if wanted.starts_with('{') {
            found.push((*word).to_owned());
        } else if wanted != *word {
            return None;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_is_found_by_its_own_path_and_only_it() {
        for route in ROUTES {
            for version in route.on.group().versions {
                let path = route.template(version);
                let path = path.replace("{namespace}", "ns").replace("{name}", "vm");
                let path = path.replace("{port}", "22").replace("{protocol}", "udp");
                let found = find(route.method.method(), &path).unwrap();
                assert!(std::ptr::eq(found.route, route), "{path}");
                assert_eq!(found.version, *version);
                let wrong = if route.method == Verb::Get { "PUT" } else { "GET" };
                assert_eq!(find(wrong, &path).unwrap_err(), NoRoute::Method(route.method.method()), "{path}");
            }
        }
    }

    #[test]
    fn parameters_are_taken_from_the_path() {
        let path = "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines/b/portforward/22/udp";
        let found = find("GET", path).unwrap();
        assert_eq!((found.namespace.as_str(), found.name.as_str()), ("a", "b"));
        assert_eq!(found.parameters, ["22", "udp"]);
        assert_eq!(found.route.subresource(), "portforward");
    }

    #[test]
    fn what_is_not_served_is_not_found() {
        for path in [
            "",
            "/",
            "//",
            "apis",
            "/apis",
            "/apis/subresources.kubevirt.io/v1",
            "/apis/subresources.kubevirt.io/v2/namespaces/a/virtualmachines/b/start",
            "/apis/kubevirt.io/v1/namespaces/a/virtualmachines/b/start",
            "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines/b",
            "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines/b/start/now",
            "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines//start",
            "/apis/subresources.kubevirt.io/v1/namespaces/../virtualmachines/b/start",
            "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines/b%2fc/start",
            "/apis/subresources.kubevirt.io/v1/namespaces/%2E%2e/virtualmachines/b/start",
            "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines/%zz/start",
            "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines/%ff/start",
            "/apis/subresources.kubevirt.io/v1/virtualmachines/b/start",
        ] {
            assert_eq!(find("PUT", path).unwrap_err(), NoRoute::Path, "{path}");
        }
    }

    #[test]
    fn names_are_taken_as_they_are_written() {
        for (word, name) in [("Foo", "Foo"), ("a_b", "a_b"), ("a%20b", "a b"), ("%62", "b"), ("%252f", "%2f")]
        {
            let path =
                format!("/apis/subresources.kubevirt.io/v1/namespaces/{word}/virtualmachines/{word}/start");
            let found = find("PUT", &path).unwrap();
            assert_eq!((found.namespace.as_str(), found.name.as_str()), (name, name), "{word}");
        }
    }

    #[test]
    fn operations_have_names_of_their_own() {
        let names: BTreeSet<_> = ROUTES.iter().map(|route| route.operation).collect();
        assert_eq!(names.len(), ROUTES.len());
        assert!(ROUTES.iter().all(|route| !route.about.is_empty()));
    }
}
