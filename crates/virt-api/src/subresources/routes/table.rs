//! The table itself.

use kubevirt_api::backup::BackupCheckpoint;
use serde_json::{Value, json};

use super::{Action, Line, On, Order, Parameter, Profiler, Question, Route, Verb};
use crate::subresources::options::{self, schema};

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
