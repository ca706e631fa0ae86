//! Mediated devices that the cluster wants: cards are cut into slices of the types that the configuration names.
//!
//! What is wanted and what there is are compared by pure functions; the kernel makes and removes slices when it is told
//! to in its tree of devices. As long as the configuration says nothing of types, slices are left as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use kubevirt_admission::ClusterConfig;
use kubevirt_api::kubevirt::devices::NodeMediatedDeviceTypesConfig;
use tracing::{info, warn};

use super::mediated::spelled;
use super::sysfs::{link_name, names, text};

/// What to make, and what not to touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Types to make, by their name or their identifier.
    wanted: Vec<String>,
    /// Types that somebody else looks after.
    foreign: Vec<String>,
}

/// A slice that there is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Slice {
    uuid: String,
    card: String,
    kind: Kind,
}

/// A type of slices.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kind {
    /// Its identifier, such as `nvidia-222`.
    id: String,
    /// Its name, such as `GRID_T4-1Q`, if it has one.
    name: Option<String>,
}

/// A card that can be cut.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Card {
    address: String,
    kinds: Vec<Kind>,
}

impl Kind {
    fn is_among(&self, types: &[String]) -> bool {
        types.iter().any(|one| *one == self.id || Some(one) == self.name.as_ref())
    }
}

impl Wish {
    /// What the configuration wants of a node with these labels; nothing if slices are not the handler's affair.
    pub fn of(config: &ClusterConfig, labels: &BTreeMap<String, String>) -> Option<Self> {
        let own = config.configuration().mediated_devices_configuration.as_ref()?;
        if own.enabled == Some(false) {
            return None;
        }
        let for_nodes = own.node_mediated_device_types.iter().flatten();
        let mut wanted: BTreeSet<String> = BTreeSet::new();
        for entry in for_nodes.filter(|entry| selects(entry, labels)) {
            wanted.extend(types(&entry.mediated_device_types, &entry.mediated_devices_types));
        }
        if wanted.is_empty() {
            wanted.extend(types(&own.mediated_device_types, &own.mediated_devices_types));
        }
        let permitted = config.permitted_host_devices().and_then(|all| all.mediated_devices.as_ref());
        let foreign =
            permitted.into_iter().flatten().filter(|one| one.external_resource_provider == Some(true));
        Some(Self {
            wanted: wanted.into_iter().collect(),
            foreign: foreign.map(|one| spelled(&one.mdev_name_selector)).collect(),
        })
    }

    /// Whether the labels of a node make a difference.
    pub fn needs_labels(config: &ClusterConfig) -> bool {
        let own = config.configuration().mediated_devices_configuration.as_ref();
        own.and_then(|own| own.node_mediated_device_types.as_ref()).is_some_and(|all| !all.is_empty())
    }

    /// Slices that nobody wants.
    fn unwanted<'a>(&self, slices: &'a [Slice]) -> Vec<&'a Slice> {
        let kept = |slice: &Slice| slice.kind.is_among(&self.wanted) || slice.kind.is_among(&self.foreign);
        slices.iter().filter(|slice| !kept(slice)).collect()
    }

    /// Which type each card is cut into that is still whole. A card has one type; types take turns, so that each
    /// has cards as long as there are any.
    fn cuts(&self, slices: &[Slice], cards: &[Card]) -> Vec<(String, String)> {
        let mut whole: Vec<&Card> =
            cards.iter().filter(|card| !slices.iter().any(|slice| slice.card == card.address)).collect();
        let mut cuts = Vec::new();
        loop {
            let before = cuts.len();
            for wanted in &self.wanted {
                let find = |card: &&Card| {
                    card.kinds.iter().find(|kind| kind.is_among(std::slice::from_ref(wanted))).cloned()
                };
                let Some((at, kind)) =
                    whole.iter().enumerate().find_map(|(at, card)| Some((at, find(card)?)))
                else {
                    continue;
                };
                cuts.push((whole.remove(at).address.clone(), kind.id));
            }
            if cuts.len() == before {
                return cuts;
            }
        }
    }
}

fn types(new: &Option<Vec<String>>, old: &Option<Vec<String>>) -> Vec<String> {
    let new = new.as_ref().filter(|types| !types.is_empty());
    new.or(old.as_ref()).into_iter().flatten().map(|one| spelled(one)).collect()
}

fn selects(entry: &NodeMediatedDeviceTypesConfig, labels: &BTreeMap<String, String>) -> bool {
    entry.node_selector.iter().all(|(name, value)| labels.get(name) == Some(value))
}

/// Makes the slices of a node what they should be, as far as nobody uses them.
pub fn arrange(sysfs: &Path, wish: &Wish) {
    for slice in wish.unwanted(&slices(sysfs)) {
        let file = sysfs.join("bus/mdev/devices").join(&slice.uuid).join("remove");
        match std::fs::write(file, "1") {
            Ok(()) => info!(device = slice.uuid, card = slice.card, "removed a mediated device"),
            Err(error) => {
                warn!(device = slice.uuid, card = slice.card, "cannot remove a mediated device: {error}");
            }
        }
    }
    for (card, kind) in wish.cuts(&slices(sysfs), &cards(sysfs)) {
        match cut(&sysfs.join("class/mdev_bus").join(&card).join("mdev_supported_types").join(&kind)) {
            Ok(count) => info!(card, kind, count, "made mediated devices"),
            Err(error) => warn!(card, kind, "cannot make mediated devices: {error}"),
        }
    }
}

/// Makes as many slices as the card has room for.
fn cut(folder: &Path) -> io::Result<usize> {
    let room = std::fs::read_to_string(folder.join("available_instances"))?;
    let count = room.trim().parse().map_err(io::Error::other)?;
    for _ in 0..count {
        let uuid = uuid::Builder::from_random_bytes(fastrand::u128(..).to_ne_bytes()).into_uuid();
        std::fs::write(folder.join("create"), uuid.to_string())?;
    }
    Ok(count)
}

fn slices(sysfs: &Path) -> Vec<Slice> {
    let folder = sysfs.join("bus/mdev/devices");
    let slice = |uuid: String| {
        let path = folder.join(&uuid);
        let card = std::fs::read_link(&path).ok()?.parent()?.file_name()?.to_str()?.to_owned();
        let id = link_name(&path.join("mdev_type"))?;
        Some(Slice { uuid, card, kind: kind(&path.join("mdev_type"), id) })
    };
    names(&folder).into_iter().filter_map(slice).collect()
}

fn cards(sysfs: &Path) -> Vec<Card> {
    let folder = sysfs.join("class/mdev_bus");
    let card = |address: String| {
        let types = folder.join(&address).join("mdev_supported_types");
        let kinds = names(&types).into_iter().map(|id| kind(&types.join(&id), id)).collect();
        Card { address, kinds }
    };
    names(&folder).into_iter().map(card).collect()
}

fn kind(folder: &Path, id: String) -> Kind {
    Kind { id: spelled(&id), name: text(&folder.join("name")).map(|name| spelled(&name)) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::devices::testing::Tree;

    fn wish(own: Value, labels: &[(&str, &str)]) -> Option<Wish> {
        let kubevirt = json!({ "spec": { "configuration": {
            "mediatedDevicesConfiguration": own,
            "permittedHostDevices": { "mediatedDevices": [
                { "mdevNameSelector": "Foreign Type", "resourceName": "a.b/c", "externalResourceProvider": true },
                { "mdevNameSelector": "T4 1Q", "resourceName": "a.b/d" },
            ] },
        } } });
        let config = ClusterConfig::of(&serde_json::from_value(kubevirt).unwrap());
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Wish::of(&config, &labels)
    }

    #[test]
    fn the_labels_of_a_node_choose_types() {
        let own = json!({
            "mediatedDevicesTypes": ["old"],
            "mediatedDeviceTypes": ["T4 1Q"],
            "nodeMediatedDeviceTypes": [
                { "nodeSelector": { "gpu": "a" }, "mediatedDeviceTypes": ["x", "y"] },
                { "nodeSelector": { "gpu": "a", "size": "big" }, "mediatedDevicesTypes": ["z"] },
            ],
        });
        let wanted = |labels: &[(&str, &str)]| wish(own.clone(), labels).unwrap().wanted;
        assert_eq!(wanted(&[]), ["T4_1Q"]);
        assert_eq!(wanted(&[("gpu", "a")]), ["x", "y"]);
        assert_eq!(wanted(&[("gpu", "a"), ("size", "big")]), ["x", "y", "z"]);
        assert_eq!(wish(own.clone(), &[]).unwrap().foreign, ["Foreign_Type"]);
        assert_eq!(wish(json!({ "mediatedDevicesTypes": ["old"] }), &[]).unwrap().wanted, ["old"]);
        assert_eq!(wish(Value::Null, &[]), None);
        assert_eq!(wish(json!({ "enabled": false, "mediatedDeviceTypes": ["x"] }), &[]), None);
    }

    #[test]
    fn types_take_turns_over_whole_cards() {
        let kind = |id: &str| Kind { id: id.into(), name: None };
        let card = |address: &str, kinds: &[&str]| Card {
            address: address.into(),
            kinds: kinds.iter().map(|id| kind(id)).collect(),
        };
        let cards = [card("1", &["a", "b"]), card("2", &["a", "b"]), card("3", &["a"]), card("4", &["c"])];
        let taken = [Slice { uuid: "u".into(), card: "1".into(), kind: kind("a") }];
        let wish = Wish { wanted: vec!["a".into(), "b".into()], foreign: vec![] };
        let cuts = |slices: &[Slice]| -> Vec<String> {
            wish.cuts(slices, &cards).into_iter().map(|(card, kind)| card + &kind).collect()
        };
        assert_eq!(cuts(&[]), ["1a", "2b", "3a"]);
        assert_eq!(cuts(&taken), ["2a", "3a"], "a card that is cut stays as it is");
        assert!(Wish::default().cuts(&[], &cards).is_empty());
    }

    #[test]
    fn slices_are_made_and_removed_where_the_kernel_wants_it() {
        let tree = Tree::new();
        let types = "devices/pci0/0000:00:03.0/mdev_supported_types";
        for (id, name, room) in [("nvidia-1", "T4 1Q", "2"), ("nvidia-2", "T4 2Q", "1")] {
            tree.file(&format!("{types}/{id}/name"), name);
            tree.file(&format!("{types}/{id}/available_instances"), room);
            tree.file(&format!("{types}/{id}/create"), "");
        }
        tree.link("class/mdev_bus/0000:00:03.0", "../../devices/pci0/0000:00:03.0");
        let wish = Wish { wanted: vec!["T4_1Q".into()], foreign: vec![] };
        arrange(tree.path(), &wish);
        let read = |path: &str| std::fs::read_to_string(tree.path().join(path)).unwrap();
        let made = read(&format!("{types}/nvidia-1/create"));
        assert_eq!((made.len(), made.chars().nth(14)), (36, Some('4')), "{made}");
        assert_eq!(read(&format!("{types}/nvidia-2/create")), "");

        // Another slice is there: it goes, unless somebody else looks after its type.
        tree.link("bus/mdev/devices/u", "../../../devices/pci0/0000:00:03.0/u");
        tree.link("devices/pci0/0000:00:03.0/u/mdev_type", "../mdev_supported_types/nvidia-2");
        tree.file("devices/pci0/0000:00:03.0/u/remove", "");
        arrange(tree.path(), &Wish { foreign: vec!["T4_2Q".into()], ..wish.clone() });
        assert_eq!(read("bus/mdev/devices/u/remove"), "");
        arrange(tree.path(), &wish);
        assert_eq!(read("bus/mdev/devices/u/remove"), "1");
    }
}
