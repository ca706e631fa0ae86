//! Everything that is served, in one table: it drives the router, discovery, OpenAPI and who may do what.

use kubevirt_api::backup::BackupCheckpoint;
use kubevirt_api::names::groups;
use serde_json::{Value, json};

use super::options::{self, schema};
use crate::cluster::is_name;

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

/// Routes as discovery lists them, then those that it does not list.
pub static ROUTES: &[Route] = &[
    put(On::Namespace, "expand-vm-spec", Action::ExpandVmSpec, "ExpandSpec")
        .about("Writes an instance type and a preference out into the machine that is given")
        .takes(vm_schema),
    get(On::Instance, "vnc", Action::Line(Line::Vnc), "VNC")
        .about("A WebSocket to the screen of an instance")
        .asks(&[PRESERVE_SESSION]),
    get(On::Instance, "vnc/screenshot", Action::Question(Question::Screenshot), "VNCScreenshot")
        .about("What the screen of an instance shows, as PNG")
        .asks(&[MOVE_CURSOR]),
    get(On::Instance, "console", Action::Line(Line::Console), "Console")
        .about("A WebSocket to the serial console of an instance"),
    get(On::Instance, "portforward/{port}", Action::PortForward, "vmi-PortForward")
        .about("A WebSocket to a port of an instance"),
    put(On::Instance, "backup", Action::Order(Order::Backup), "Backup")
        .about("Begins, pulls or ends a backup of an instance")
        .takes(backup_schema),
    put(On::Instance, "redefine-checkpoint", Action::Order(Order::RedefineCheckpoint), "RedefineCheckpoint")
        .about("Tells an instance of a checkpoint that was made before")
        .takes(schema::<BackupCheckpoint>),
    put(On::Instance, "pause", Action::Order(Order::Pause), "Pause")
        .about("Pauses an instance")
        .takes(schema::<options::PauseOptions>),
    put(On::Instance, "unpause", Action::Order(Order::Unpause), "Unpause")
        .about("Lets an instance go on")
        .takes(schema::<options::PauseOptions>),
    put(On::Instance, "freeze", Action::Order(Order::Freeze), "Freeze")
        .about("Holds the file systems of an instance still")
        .takes(schema::<options::FreezeOptions>),
    put(On::Instance, "unfreeze", Action::Order(Order::Unfreeze), "Unfreeze")
        .about("Lets the file systems of an instance go on"),
    put(On::Instance, "reset", Action::Order(Order::Reset), "Reset")
        .about("Resets an instance, as the button on a machine does"),
    put(On::Instance, "softreboot", Action::Order(Order::SoftReboot), "SoftReboot")
        .about("Asks the guest of an instance to reboot"),
    put(On::Machine, "start", Action::Start, "Start")
        .about("Starts a machine")
        .takes(schema::<options::StartOptions>),
    put(On::Machine, "stop", Action::Stop, "Stop")
        .about("Stops a machine")
        .takes(schema::<options::StopOptions>),
    put(On::Machine, "restart", Action::Restart, "Restart")
        .about("Stops a machine and starts it again")
        .takes(schema::<options::RestartOptions>),
    put(On::Machine, "migrate", Action::Migrate, "Migrate")
        .about("Moves a machine to another node")
        .takes(schema::<options::MigrateOptions>),
    get(On::Machine, "expand-spec", Action::ExpandSpec, "vm-ExpandSpec")
        .about("A machine with its instance type and preference written out"),
    get(On::Machine, "objectgraph", Action::ObjectGraph, "vm-objectgraph")
        .about("The objects that a machine depends on")
        .takes(schema::<options::ObjectGraphOptions>),
    put(On::Machine, "evacuate/cancel", Action::EvacuateCancel, "vm-evacuatecancel")
        .about("Calls off that a machine leaves its node")
        .takes(schema::<options::EvacuateCancelOptions>),
    get(On::Instance, "guestosinfo", Action::Question(Question::GuestOsInfo), "Guestosinfo")
        .about("What the guest agent of an instance knows"),
    get(On::Instance, "userlist", Action::Question(Question::UserList), "Userlist")
        .about("Who is logged in to an instance"),
    get(On::Instance, "filesystemlist", Action::Question(Question::FilesystemList), "Filesystemlist")
        .about("What is mounted in an instance"),
    put(On::Instance, "addvolume", Action::AddVolume, "vmi-addvolume")
        .about("Plugs a volume into an instance")
        .takes(schema::<options::AddVolume>),
    put(On::Instance, "removevolume", Action::RemoveVolume, "vmi-removevolume")
        .about("Unplugs a volume from an instance")
        .takes(schema::<options::RemoveVolume>),
    get(On::Instance, "objectgraph", Action::ObjectGraph, "vmi-objectgraph")
        .about("The objects that an instance depends on")
        .takes(schema::<options::ObjectGraphOptions>),
    get(On::Instance, "sev/fetchcertchain", Action::Question(Question::FetchCertChain), "SEVFetchCertChain")
        .about("Who the host of an instance is, by its SEV certificates"),
    get(
        On::Instance,
        "sev/querylaunchmeasurement",
        Action::Question(Question::QueryLaunchMeasurement),
        "SEVQueryLaunchMeasurement",
    )
    .about("What was loaded into an instance, as SEV measured it"),
    put(On::Instance, "sev/setupsession", Action::SetupSession, "SEVSetupSession")
        .about("Gives an instance the owner's side of its SEV session")
        .takes(schema::<options::SevSession>),
    put(
        On::Instance,
        "sev/injectlaunchsecret",
        Action::Order(Order::InjectLaunchSecret),
        "SEVInjectLaunchSecret",
    )
    .about("Gives an instance a secret that only SEV can read")
    .takes(sev_secret_schema),
    put(On::Instance, "evacuate/cancel", Action::EvacuateCancel, "vmi-evacuatecancel")
        .about("Calls off that an instance leaves its node")
        .takes(schema::<options::EvacuateCancelOptions>),
    get(On::Instance, "portforward/{port}/{protocol}", Action::PortForward, "vmi-PortForwardWithProtocol")
        .about("A WebSocket to a port of an instance by tcp or udp")
        .unlisted(),
    get(On::Machine, "portforward/{port}", Action::PortForward, "vm-PortForward")
        .about("A WebSocket to a port of a machine")
        .unlisted(),
    get(On::Machine, "portforward/{port}/{protocol}", Action::PortForward, "vm-PortForwardWithProtocol")
        .about("A WebSocket to a port of a machine by tcp or udp")
        .unlisted(),
    get(On::Instance, "usbredir", Action::Line(Line::UsbRedir), "usbredir")
        .about("A WebSocket that brings a USB device to an instance")
        .unlisted(),
    get(On::Instance, "vsock", Action::Line(Line::Vsock), "VSOCK")
        .about("A WebSocket to a vsock port of an instance")
        .asks(&[VSOCK_PORT, VSOCK_TLS])
        .unlisted(),
    put(On::Machine, "addvolume", Action::AddVolume, "vm-addvolume")
        .about("Adds a volume to a machine, also while it runs")
        .takes(schema::<options::AddVolume>)
        .unlisted(),
    put(On::Machine, "removevolume", Action::RemoveVolume, "vm-removevolume")
        .about("Removes a volume from a machine, also while it runs")
        .takes(schema::<options::RemoveVolume>)
        .unlisted(),
    put(On::Machine, "memorydump", Action::MemoryDump, "MemoryDump")
        .about("Dumps the memory of a machine to a claim")
        .takes(schema::<options::MemoryDump>)
        .unlisted(),
    put(On::Machine, "removememorydump", Action::RemoveMemoryDump, "RemoveMemoryDump")
        .about("Takes the claim of a memory dump from a machine")
        .unlisted(),
    get(On::Installation, "version", Action::Version, "Version")
        .about("The version of this server")
        .unlisted(),
    get(On::Installation, "guestfs", Action::Guestfs, "Guestfs")
        .about("The image of the libguestfs tools")
        .unlisted(),
    get(On::Installation, "healthz", Action::Health, "CheckHealth")
        .about("Whether this server reaches the API server")
        .unlisted(),
    get(
        On::Installation,
        "start-cluster-profiler",
        Action::Profiler(Profiler::Start),
        "start-cluster-profiler",
    )
    .about("Starts the profilers of all components")
    .unlisted(),
    get(On::Installation, "stop-cluster-profiler", Action::Profiler(Profiler::Stop), "stop-cluster-profiler")
        .about("Stops the profilers of all components")
        .unlisted(),
    get(On::Installation, "dump-cluster-profiler", Action::Profiler(Profiler::Dump), "dump-cluster-profiler")
        .about("The results of all profilers")
        .unlisted(),
    post(On::Template, "process", Action::Template, "process").about("The machine that a template makes"),
    post(On::Template, "create", Action::Template, "create").about("Makes a machine from a template"),
];

const PRESERVE_SESSION: Parameter = Parameter {
    name: "preserveSession",
    kind: "boolean",
    required: false,
    about: "Refuse this connection instead of ending one that is there",
};
const MOVE_CURSOR: Parameter = Parameter {
    name: "moveCursor",
    kind: "boolean",
    required: false,
    about: "Move the cursor to wake the screen up",
};
const VSOCK_PORT: Parameter =
    Parameter { name: "port", kind: "integer", required: true, about: "The vsock port of the guest" };
const VSOCK_TLS: Parameter = Parameter {
    name: "tls",
    kind: "boolean",
    required: false,
    about: "Speak TLS to the guest; true if unset",
};

fn vm_schema() -> Value {
    json!({ "type": "object", "description": "A VirtualMachine", "x-kubernetes-preserve-unknown-fields": true })
}

fn backup_schema() -> Value {
    let about = "Which backup it is and what is done about it: backupName, cmd, mode and what they need";
    json!({ "type": "object", "description": about, "x-kubernetes-preserve-unknown-fields": true })
}

fn sev_secret_schema() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    json!({ "type": "object", "properties": {
        "header": text("What is needed to decrypt it, base64"), "secret": text("The encrypted secret, base64"),
    } })
}

const fn route(method: Verb, on: On, path: &'static str, action: Action, operation: &'static str) -> Route {
    Route { method, on, path, action, listed: true, operation, about: "", body: None, query: &[] }
}

const fn get(on: On, path: &'static str, action: Action, operation: &'static str) -> Route {
    route(Verb::Get, on, path, action, operation)
}

const fn put(on: On, path: &'static str, action: Action, operation: &'static str) -> Route {
    route(Verb::Put, on, path, action, operation)
}

const fn post(on: On, path: &'static str, action: Action, operation: &'static str) -> Route {
    route(Verb::Post, on, path, action, operation)
}

impl Route {
    const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    const fn takes(mut self, body: fn() -> Value) -> Self {
        self.body = Some(body);
        self
    }

    const fn asks(mut self, query: &'static [Parameter]) -> Self {
        self.query = query;
        self
    }

    const fn unlisted(mut self) -> Self {
        self.listed = false;
        self
    }
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
        let named = |word: &str, wanted: bool| !wanted || is_name(word);
        if !named(namespace, self.on != On::Installation) || !named(name, self.on.resource().is_some()) {
            return None;
        }
        let parameters = parameters(self.path, rest)?;
        Some(Matched { route: self, version, namespace: namespace.into(), name: name.into(), parameters })
    }
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
            "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines/B/start",
            "/apis/subresources.kubevirt.io/v1/virtualmachines/b/start",
        ] {
            assert_eq!(find("PUT", path).unwrap_err(), NoRoute::Path, "{path}");
        }
    }

    #[test]
    fn operations_have_names_of_their_own() {
        let names: BTreeSet<_> = ROUTES.iter().map(|route| route.operation).collect();
        assert_eq!(names.len(), ROUTES.len());
        assert!(ROUTES.iter().all(|route| !route.about.is_empty()));
    }
}
