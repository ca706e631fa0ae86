//! A resource of this node: what there is of it, and what a container gets that asks for some.

use std::collections::BTreeMap;

use kubevirt_api::names::resources::DEVICE_NAMESPACE;

use super::kubelet::{HEALTHY, UNHEALTHY, api};

/// A resource that pods can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its name, such as `devices.kubevirt.io/kvm`.
    pub name: String,
    /// What there is of it.
    pub supply: Supply,
}

/// What there is of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supply {
    /// One thing that many containers use at once, up to a number.
    Shared {
        /// What it is.
        thing: Thing,
        /// How many may use it.
        count: usize,
    },
    /// Things that one container has for itself.
    Own {
        /// What the variable starts with that tells a container what it got.
        variable: &'static str,
        /// The things.
        units: Vec<Unit>,
        /// Whether the unprivileged user of launchers must own the device nodes.
        hand_over: bool,
    },
}

/// What containers share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Thing {
    /// A device node.
    Node {
        /// Its path on the node, which is also its path in the container.
        path: String,
    },
    /// The folder of a socket.
    Socket {
        /// The folder on the node, and in the container.
        folder: String,
        /// The socket's name.
        file: String,
        /// Whether there is nothing to give without the socket.
        required: bool,
        /// Whether the unprivileged user of launchers must own the socket.
        hand_over: bool,
    },
}

/// A thing for one container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// How the kubelet calls it.
    pub id: String,
    /// The NUMA node that it is near to.
    pub numa: Option<i64>,
    /// What the container is told.
    pub value: String,
    /// The device nodes that the container gets, all of which must be there.
    pub nodes: Vec<String>,
}

/// How a path is, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// It is there and works.
    Well,
    /// It is not there.
    Gone,
    /// It is there but cannot be used: nothing is promised of it.
    Useless,
}

/// The kubelet asked for a device that was not offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{resource} has no device {id}")]
pub struct UnknownDevice {
    /// The resource.
    pub resource: String,
    /// What was asked for.
    pub id: String,
}

impl Resource {
    /// The name of its socket. Paths of sockets are short, so a long name is cut and told apart by a number.
    pub fn socket(&self) -> String {
        let own = self.name.strip_prefix(DEVICE_NAMESPACE).and_then(|name| name.strip_prefix('/'));
        let mut name = own.unwrap_or(&self.name).replace('/', "-");
        if name.len() > 48 {
            // FNV-1a: any number that differs will do.
            let digest = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
                (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            });
            name = format!("{}-{digest:016x}", name.chars().take(28).collect::<String>());
        }
        format!("kubevirt-{name}.sock")
    }

    /// The paths whose condition decides about its devices.
    pub fn paths(&self) -> Vec<String> {
        match &self.supply {
            Supply::Shared { thing: Thing::Node { path }, .. } => vec![path.clone()],
            Supply::Shared { thing: Thing::Socket { folder, file, required, .. }, .. } => {
                required.then(|| format!("{folder}/{file}")).into_iter().collect()
            }
            Supply::Own { units, .. } => units.iter().flat_map(|unit| unit.nodes.clone()).collect(),
        }
    }

    /// Its devices as the kubelet is told.
    pub fn devices(&self, condition: impl Fn(&str) -> Condition) -> Vec<api::Device> {
        let worst =
            |paths: &[String]| paths.iter().map(|path| condition(path)).max().unwrap_or(Condition::Well);
        match &self.supply {
            Supply::Shared { count, .. } => {
                let condition = worst(&self.paths());
                let short = self.name.rsplit('/').next().unwrap_or_default();
                (0..*count).filter_map(|number| device(format!("{short}{number}"), condition, None)).collect()
            }
            Supply::Own { units, .. } => units
                .iter()
                .filter_map(|unit| device(unit.id.clone(), worst(&unit.nodes), unit.numa))
                .collect(),
        }
    }

    /// What a container gets that was given these devices.
    pub fn allocate(&self, ids: &[String]) -> Result<api::ContainerAllocateResponse, UnknownDevice> {
        let mut answer = api::ContainerAllocateResponse::default();
        match &self.supply {
            Supply::Shared { thing: Thing::Node { path }, .. } => answer.devices.push(node(path, "rw")),
            Supply::Shared { thing: Thing::Socket { folder, .. }, .. } => answer.mounts.push(api::Mount {
                container_path: folder.clone(),
                host_path: folder.clone(),
                read_only: false,
            }),
            Supply::Own { variable, .. } => {
                let units = self.units(ids)?;
                let values: Vec<&str> = units.iter().map(|unit| unit.value.as_str()).collect();
                answer.envs = BTreeMap::from([(self.variable(variable), values.join(","))]);
                let mut nodes: Vec<&String> = Vec::new();
                for path in units.iter().flat_map(|unit| &unit.nodes) {
                    // Devices may share a node, and a node can be given only once.
                    if !nodes.contains(&path) {
                        nodes.push(path);
                    }
                }
                answer.devices = nodes.into_iter().map(|path| node(path, "mrw")).collect();
            }
        }
        Ok(answer)
    }

    /// The device nodes among these devices that launchers must own.
    pub fn hand_over(&self, ids: &[String]) -> Vec<String> {
        match &self.supply {
            Supply::Own { hand_over: true, .. } => {
                let units = self.units(ids).unwrap_or_default();
                units.into_iter().flat_map(|unit| unit.nodes.clone()).collect()
            }
            Supply::Shared { thing: Thing::Socket { folder, file, hand_over: true, .. }, .. } => {
                vec![folder.clone(), format!("{folder}/{file}")]
            }
            _ => Vec::new(),
        }
    }

    fn units(&self, ids: &[String]) -> Result<Vec<&Unit>, UnknownDevice> {
        let Supply::Own { units, .. } = &self.supply else { return Ok(Vec::new()) };
        let find = |id: &String| {
            let unknown = || UnknownDevice { resource: self.name.clone(), id: id.clone() };
            units.iter().find(|unit| unit.id == *id).ok_or_else(unknown)
        };
        ids.iter().map(find).collect()
    }

    fn variable(&self, prefix: &str) -> String {
        format!("{prefix}_{}", self.name.to_uppercase().replace(['/', '.'], "_"))
    }
}

fn device(id: String, condition: Condition, numa: Option<i64>) -> Option<api::Device> {
    let health = match condition {
        Condition::Well => HEALTHY,
        Condition::Gone => UNHEALTHY,
        Condition::Useless => return None,
    };
    let topology = numa.map(|id| api::TopologyInfo { nodes: vec![api::NumaNode { id }] });
    Some(api::Device { id, health: health.to_owned(), topology })
}

fn node(path: &str, permissions: &str) -> api::DeviceSpec {
    api::DeviceSpec {
        container_path: path.to_owned(),
        host_path: path.to_owned(),
        permissions: permissions.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kvm() -> Resource {
        let thing = Thing::Node { path: "/dev/kvm".into() };
        Resource { name: "devices.kubevirt.io/kvm".into(), supply: Supply::Shared { thing, count: 3 } }
    }

    fn cards() -> Resource {
        let unit = |id: &str, numa| Unit {
            id: id.into(),
            numa,
            value: format!("0000:0{id}:00.0"),
            nodes: vec!["/dev/vfio/vfio".into(), format!("/dev/vfio/{id}")],
        };
        let units = vec![unit("1", Some(0)), unit("2", None)];
        let supply = Supply::Own { variable: "PCI_RESOURCE", units, hand_over: false };
        Resource { name: "example.com/a-card".into(), supply }
    }

    #[test]
    fn a_shared_device_is_as_well_as_its_node() {
        for (condition, expected) in [
            (Condition::Well, vec!["kvm0 Healthy", "kvm1 Healthy", "kvm2 Healthy"]),
            (Condition::Gone, vec!["kvm0 Unhealthy", "kvm1 Unhealthy", "kvm2 Unhealthy"]),
            (Condition::Useless, vec![]),
        ] {
            let devices = kvm().devices(|path| {
                assert_eq!(path, "/dev/kvm");
                condition
            });
            let told: Vec<_> =
                devices.iter().map(|device| format!("{} {}", device.id, device.health)).collect();
            assert_eq!(told, expected);
        }
        let answer = kvm().allocate(&["kvm1".into()]).unwrap();
        assert_eq!(answer.devices, [node("/dev/kvm", "rw")]);
        assert!(answer.envs.is_empty() && answer.mounts.is_empty());
    }

    #[test]
    fn a_device_of_its_own_is_told_and_given() {
        let gone = |path: &str| if path == "/dev/vfio/2" { Condition::Gone } else { Condition::Well };
        let devices = cards().devices(gone);
        assert_eq!(devices[0].topology.as_ref().map(|near| near.nodes[0].id), Some(0));
        assert_eq!((devices[0].health.as_str(), devices[1].health.as_str()), (HEALTHY, UNHEALTHY));
        assert_eq!(devices[1].topology, None);

        let answer = cards().allocate(&["2".into(), "1".into()]).unwrap();
        let told = ("PCI_RESOURCE_EXAMPLE_COM_A-CARD".to_owned(), "0000:02:00.0,0000:01:00.0".to_owned());
        assert_eq!(answer.envs.into_iter().collect::<Vec<_>>(), [told]);
        let nodes: Vec<_> = answer.devices.iter().map(|given| given.host_path.as_str()).collect();
        assert_eq!(nodes, ["/dev/vfio/vfio", "/dev/vfio/2", "/dev/vfio/1"]);
        assert!(answer.devices.iter().all(|given| given.permissions == "mrw"));

        let error = cards().allocate(&["3".into()]).unwrap_err();
        assert_eq!(error.to_string(), "example.com/a-card has no device 3");
    }

    #[test]
    fn a_socket_is_given_with_its_folder() {
        let socket = |required| Resource {
            name: "devices.kubevirt.io/tdx".into(),
            supply: Supply::Shared {
                thing: Thing::Socket {
                    folder: "/run/qgs".into(),
                    file: "s".into(),
                    required,
                    hand_over: true,
                },
                count: 1,
            },
        };
        assert_eq!(socket(true).devices(|_| Condition::Gone)[0].health, UNHEALTHY);
        assert_eq!(socket(false).devices(|_| Condition::Gone)[0].health, HEALTHY);
        assert_eq!(socket(true).allocate(&[]).unwrap().mounts[0].host_path, "/run/qgs");
        assert_eq!(socket(true).hand_over(&[]), ["/run/qgs", "/run/qgs/s"]);
    }

    #[test]
    fn sockets_have_short_names_of_their_own() {
        assert_eq!(kvm().socket(), "kubevirt-kvm.sock");
        assert_eq!(cards().socket(), "kubevirt-example.com-a-card.sock");
        let long = |last: char| Resource { name: format!("example.com/{}{last}", "x".repeat(80)), ..cards() };
        assert!(long('a').socket().len() < 64);
        assert_ne!(long('a').socket(), long('b').socket());
    }
}
