//! The graph of block nodes under a disk.

use serde_json::{Value, json};

use super::args::{Args, Object};
use super::names;
use crate::domain::disk::{Cache, Disk, Image, ImageFormat, Io, Location};

/// Object of the host's service for persistent reservations.
pub(super) const RESERVATIONS: &str = "pr-helper0";

/// Adds the nodes under a disk; the topmost is [`names::node`].
pub(super) fn add(disk: &Disk, args: &mut Args) {
    let Some(image) = &disk.image else { return };
    let backing = image.backing.as_deref().map(|base| layers(disk, base, 1, args));
    let data = image.data.as_ref().map(|location| data(disk, location, args));
    let (node, file) = (names::node(&disk.name), names::storage_node(&disk.name));
    args.object("-blockdev", &storage(disk, &image.location, file.clone(), disk.read_only));
    args.object("-blockdev", &format(disk, image, node, file, disk.read_only, backing, data));
}

/// The nodes under a disk, each before those it uses.
pub(super) fn nodes(disk: &Disk) -> Vec<String> {
    let Some(image) = &disk.image else { return Vec::new() };
    let mut nodes = vec![names::node(&disk.name), names::storage_node(&disk.name)];
    if image.data.is_some() {
        nodes.extend([names::data_node(&disk.name), names::data_storage_node(&disk.name)]);
    }
    let below = std::iter::successors(image.backing.as_deref(), |image| image.backing.as_deref());
    for (depth, _) in (1..).zip(below) {
        nodes
            .extend([names::backing_node(&disk.name, depth), names::backing_storage_node(&disk.name, depth)]);
    }
    nodes
}

/// Adds an image below an overlay and all below it; answers with its node.
fn layers(disk: &Disk, image: &Image, depth: usize, args: &mut Args) -> String {
    let backing = image.backing.as_deref().map(|base| layers(disk, base, depth + 1, args));
    let (node, file) =
        (names::backing_node(&disk.name, depth), names::backing_storage_node(&disk.name, depth));
    args.object("-blockdev", &storage(disk, &image.location, file.clone(), true));
    args.object("-blockdev", &format(disk, image, node.clone(), file, true, backing, None));
    node
}

/// Adds the node of the bytes whose changes are tracked.
fn data(disk: &Disk, location: &Location, args: &mut Args) -> String {
    let (node, file) = (names::data_node(&disk.name), names::data_storage_node(&disk.name));
    args.object("-blockdev", &storage(disk, location, file.clone(), disk.read_only));
    let image = Image::raw(location.clone());
    args.object("-blockdev", &format(disk, &image, node.clone(), file, disk.read_only, None, None));
    node
}

fn storage(disk: &Disk, location: &Location, node: String, read_only: bool) -> Object {
    let driver = match location {
        Location::File(_) => "file",
        Location::Block(_) => "host_device",
    };
    let aio = disk.io.map(|io| match io {
        Io::Native => "native",
        Io::Threads => "threads",
    });
    let object = Object::default()
        .with("driver", driver)
        .with("node-name", node)
        .with("filename", location.path())
        .with("read-only", read_only)
        .maybe("aio", aio)
        .maybe("pr-manager", disk.reserves().then_some(RESERVATIONS));
    common(disk, object)
}

fn format(
    disk: &Disk,
    image: &Image,
    node: String,
    file: String,
    read_only: bool,
    backing: Option<String>,
    data: Option<String>,
) -> Object {
    let driver = match image.format {
        ImageFormat::Raw => "raw",
        ImageFormat::Qcow2 => "qcow2",
    };
    let object = Object::default()
        .with("driver", driver)
        .with("node-name", node)
        .with("read-only", read_only)
        .with("file", file)
        .maybe("data-file", data);
    let object = common(disk, object);
    match (image.format, backing) {
        (ImageFormat::Raw, _) => object,
        // Whatever the image's own header names is not to be opened.
        (ImageFormat::Qcow2, backing) => object.with("backing", backing.map_or(Value::Null, Value::from)),
    }
}

fn common(disk: &Disk, object: Object) -> Object {
    let cache = json!({ "direct": disk.cache == Cache::None, "no-flush": false });
    object.maybe("discard", disk.discard.then_some("unmap")).with("cache", cache)
}
