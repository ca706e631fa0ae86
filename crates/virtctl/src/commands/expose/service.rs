//! The service as a function of flags and of what it is put in front of.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubevirt_api::names::labels;
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::Arguments;

/// What can be exposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A machine.
    Vm,
    /// An instance.
    Vmi,
    /// A set of instances.
    ReplicaSet,
}

/// Why nothing is exposed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No such type of object.
    #[error("unsupported resource type: {0}; use vm, vmi or vmirs")]
    Kind(String),
    /// No such protocol.
    #[error("unknown protocol: {0}; --protocol takes TCP or UDP")]
    Protocol(String),
    /// A service that leads out of the cluster.
    #[error("type: {0} not supported; --type takes ClusterIP, NodePort or LoadBalancer")]
    ExternalName(String),
    /// No such type of service.
    #[error("unknown service type: {0}; --type takes ClusterIP, NodePort or LoadBalancer")]
    Type(String),
    /// No such families.
    #[error("unknown IPFamily/s: {0}; --ip-family takes IPv4, IPv6 or both with a comma between them")]
    Families(String),
    /// No such policy.
    #[error(
        "unknown IPFamilyPolicy/s: {0}; --ip-family-policy takes SingleStack, PreferDualStack or RequireDualStack"
    )]
    Policy(String),
    /// No such port.
    #[error("--port {0} is not a port: it must be between 1 and 65535")]
    Port(i32),
    /// Nothing to expose.
    #[error(
        "couldn't find port via --port flag or introspection: add --port, since it lists no ports for the pod network"
    )]
    NoPorts,
    /// A set that selects everything.
    #[error("cannot expose VirtualMachineInstanceReplicaSet without any selector labels")]
    NoLabels,
    /// A set whose selector is more than a service can say.
    #[error("cannot expose VirtualMachineInstanceReplicaSet with match expressions")]
    Expressions,
}

/// What the flags ask for.
#[derive(Debug)]
pub struct Wanted {
    /// What is exposed.
    pub kind: Kind,
    /// The flags that say something about a port that is not named.
    pub without_port: Vec<&'static str>,
    name: String,
    port: Option<ServicePort>,
    spec: ServiceSpec,
}

/// What a service is put in front of.
#[derive(Debug)]
pub struct Behind {
    selector: BTreeMap<String, String>,
    ports: Vec<ServicePort>,
    owner: Option<OwnerReference>,
}

impl Wanted {
    /// Reads the flags.
    pub fn of(arguments: &Arguments) -> Result<Self, Error> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let families = families(arguments.ip_family.as_deref().unwrap_or_default())?;
        let policy = policy(arguments.ip_family_policy.as_deref().unwrap_or_default(), families.len())?;
        let spec = ServiceSpec {
            type_: Some(service_type(&arguments.service_type)?.to_owned()),
            cluster_ip: given(&arguments.cluster_ip),
            external_ips: given(&arguments.external_ip).map(|ip| vec![ip]),
            ip_families: Some(families.into_iter().map(str::to_owned).collect::<Vec<_>>())
                .filter(|families| !families.is_empty()),
            ip_family_policy: policy.map(str::to_owned),
            ..Default::default()
        };
        let (kind, port) = (kind(&arguments.kind)?, port(arguments)?);
        let without_port = if port.is_none() { about_port(arguments) } else { Vec::new() };
        Ok(Self { kind, without_port, name: arguments.name.clone(), port, spec })
    }

    /// The service in front of it.
    pub fn service(&self, behind: &Behind, namespace: &str) -> Result<Service, Error> {
        let ports = self.port.clone().map_or_else(|| behind.ports.clone(), |port| vec![port]);
        if ports.is_empty() {
            return Err(Error::NoPorts);
        }
        // To block the owner's deletion would need more rights than to read it.
        let owner =
            behind.owner.clone().map(|owner| OwnerReference { block_owner_deletion: Some(false), ..owner });
        Ok(Service {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(namespace.to_owned()),
                owner_references: owner.map(|owner| vec![owner]),
                ..Default::default()
            },
            spec: Some(ServiceSpec {
                ports: Some(ports),
                selector: Some(behind.selector.clone()),
                ..self.spec.clone()
            }),
            status: None,
        })
    }
}

impl Behind {
    /// One machine: its pod has a label with its name.
    pub fn machine(
        name: &str,
        owner: Option<OwnerReference>,
        spec: Option<&VirtualMachineInstanceSpec>,
    ) -> Self {
        let selector = BTreeMap::from([(labels::VMI_ID.to_owned(), id(name))]);
        Self { selector, ports: listed(spec), owner }
    }

    /// The machines of a set.
    pub fn replica_set(
        selector: &LabelSelector,
        owner: Option<OwnerReference>,
        spec: Option<&VirtualMachineInstanceSpec>,
    ) -> Result<Self, Error> {
        let labels = selector.match_labels.clone().filter(|labels| !labels.is_empty());
        let labels = labels.ok_or(Error::NoLabels)?;
        if selector.match_expressions.as_ref().is_some_and(|all| !all.is_empty()) {
            return Err(Error::Expressions);
        }
        Ok(Self { selector: labels, ports: listed(spec), owner })
    }
}

/// The ports that a machine lists for the pod network.
fn listed(spec: Option<&VirtualMachineInstanceSpec>) -> Vec<ServicePort> {
    let Some(spec) = spec else { return Vec::new() };
    let pod = spec.networks.iter().flatten().find(|network| network.pod.is_some());
    let mut interfaces = spec.domain.devices.interfaces.iter().flatten();
    let interface = pod.and_then(|pod| interfaces.find(|interface| interface.name == pod.name));
    let ports = interface.and_then(|interface| interface.ports.as_deref()).unwrap_or_default();
    let service = |(index, port): (usize, &kubevirt_api::vmi::network::Port)| ServicePort {
        name: Some(format!("port-{}", index + 1)),
        protocol: port.protocol.clone(),
        port: port.port,
        ..Default::default()
    };
    ports.iter().enumerate().map(service).collect()
}

/// The name of a machine as the value of a label: a long one ends in a hash, as on the pod.
fn id(name: &str) -> String {
    const LONGEST: usize = 63;
    const HASH: usize = 8;
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, name.as_bytes());
    let hash: String = hash.as_ref().iter().take(HASH / 2).map(|byte| format!("{byte:02x}")).collect();
    let kept: String = name.chars().take(LONGEST - HASH - 1).collect();
    format!("{kept}-{hash}")
}

fn kind(word: &str) -> Result<Kind, Error> {
    match word.to_ascii_lowercase().as_str() {
        "vm" | "vms" | "virtualmachine" | "virtualmachines" => Ok(Kind::Vm),
        "vmi" | "vmis" | "virtualmachineinstance" | "virtualmachineinstances" => Ok(Kind::Vmi),
        "vmirs" | "vmirss" | "virtualmachineinstancereplicaset" | "virtualmachineinstancereplicasets" => {
            Ok(Kind::ReplicaSet)
        }
        _ => Err(Error::Kind(word.to_owned())),
    }
}

fn port(arguments: &Arguments) -> Result<Option<ServicePort>, Error> {
    let protocol = protocol(arguments.protocol.as_deref().unwrap_or("TCP"))?;
    let target = arguments.target_port.as_deref().filter(|port| !port.is_empty());
    let name = arguments.port_name.clone().filter(|name| !name.is_empty());
    let Some(port) = arguments.port.filter(|port| *port != 0) else { return Ok(None) };
    if !(1..=65535).contains(&port) {
        return Err(Error::Port(port));
    }
    let number =
        |text: &str| text.parse().map_or_else(|_| IntOrString::String(text.to_owned()), IntOrString::Int);
    let protocol = Some(protocol.to_owned());
    Ok(Some(ServicePort { name, protocol, port, target_port: target.map(number), ..Default::default() }))
}

/// The flags that describe the port of --port.
fn about_port(arguments: &Arguments) -> Vec<&'static str> {
    let flags = [
        ("--protocol", &arguments.protocol),
        ("--target-port", &arguments.target_port),
        ("--port-name", &arguments.port_name),
    ];
    let given = |value: &Option<String>| value.as_ref().is_some_and(|value| !value.is_empty());
    flags.into_iter().filter(|(_, value)| given(value)).map(|(flag, _)| flag).collect()
}

fn among<const N: usize>(words: [&'static str; N], text: &str) -> Option<&'static str> {
    words.into_iter().find(|word| word.eq_ignore_ascii_case(text))
}

fn protocol(text: &str) -> Result<&'static str, Error> {
    among(["TCP", "UDP"], text).ok_or_else(|| Error::Protocol(text.to_owned()))
}

fn service_type(text: &str) -> Result<&'static str, Error> {
    match among(["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"], text) {
        Some("ExternalName") => Err(Error::ExternalName(text.to_owned())),
        Some(known) => Ok(known),
        None => Err(Error::Type(text.to_owned())),
    }
}

fn families(text: &str) -> Result<Vec<&'static str>, Error> {
    match among(["", "IPv4", "IPv6", "IPv4,IPv6", "IPv6,IPv4"], text) {
        Some("") => Ok(Vec::new()),
        Some(known) => Ok(known.split(',').collect()),
        None => Err(Error::Families(text.to_owned())),
    }
}

/// Two families without a policy are meant to be used where the cluster has both.
fn policy(text: &str, families: usize) -> Result<Option<&'static str>, Error> {
    match among(["", "SingleStack", "PreferDualStack", "RequireDualStack"], text) {
        Some("") => Ok((families > 1).then_some("PreferDualStack")),
        Some(known) => Ok(Some(known)),
        None => Err(Error::Policy(text.to_owned())),
    }
}

#[cfg(test)]
mod tests;
