//! One of the two sets of names: its folders and its path table.

use std::collections::HashMap;

use super::records::{Overflow, attributes, name, push, record, rock_ridge};
use super::tree::{Child, Named, Tree, in_order};
use super::{Entry, SECTOR, names};

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_000;

/// Which set of names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The one that all readers know, with Rock Ridge fields.
    Primary,
    /// The one of Windows.
    Joliet,
}

/// A folder as it is stored.
pub struct Extent {
    /// Its records.
    pub folder: Vec<u8>,
    /// Fields that do not fit into its records.
    pub overflow: Vec<u8>,
}

impl Extent {
    /// Length of the records, in whole sectors.
    pub fn length(&self) -> u64 {
        (self.folder.len() as u64).next_multiple_of(SECTOR)
    }

    /// All bytes.
    pub fn bytes(mut self) -> Vec<u8> {
        self.folder.resize(self.length() as usize, 0);
        self.folder.extend(self.overflow);
        self.folder
    }
}

/// All folders as one set of names has them.
pub struct View<'a> {
    kind: Kind,
    folders: Vec<Named>,
    /// Places of folders, by their number in the tree.
    places: HashMap<usize, usize>,
    entries: &'a [Entry],
}

impl<'a> View<'a> {
    pub fn new(tree: &Tree, entries: &'a [Entry], kind: Kind) -> Self {
        let folders = match kind {
            Kind::Primary => in_order(tree, names::primary),
            Kind::Joliet => in_order(tree, names::joliet),
        };
        let places = folders.iter().enumerate().map(|(place, named)| (named.folder, place)).collect();
        Self { kind, folders, places, entries }
    }

    /// The list of all folders, in one of the byte orders; without places only its length is right.
    pub fn path_table(&self, places: &[(u32, u32)], big_endian: bool) -> Vec<u8> {
        let mut table = Vec::new();
        for (index, folder) in self.folders.iter().enumerate() {
            let sector = places.get(index).map_or(0, |place| place.0);
            let parent = folder.parent as u16 + 1;
            table.extend([folder.identifier.len() as u8, 0]);
            if big_endian {
                table.extend(sector.to_be_bytes());
                table.extend(parent.to_be_bytes());
            } else {
                table.extend(sector.to_le_bytes());
                table.extend(parent.to_le_bytes());
            }
            table.extend(&folder.identifier);
            table.resize(table.len().next_multiple_of(2), 0);
        }
        table
    }

    /// The bytes of all folders; without places only their lengths are right.
    pub fn folders(&self, places: &[(u32, u32)], files: &[u32]) -> Vec<Extent> {
        (0..self.folders.len())
            .map(|index| {
                // Some readers look for what is left over nowhere but behind the folder.
                let (at, length) = places.get(index).copied().unwrap_or_default();
                let mut overflow = Overflow::at(at + length / SECTOR as u32);
                let folder = self.folder(index, places, files, &mut overflow);
                Extent { folder, overflow: overflow.bytes }
            })
            .collect()
    }

    fn folder(&self, index: usize, places: &[(u32, u32)], files: &[u32], overflow: &mut Overflow) -> Vec<u8> {
        let place = |index: usize| places.get(index).copied().unwrap_or_default();
        let folder = &self.folders[index];
        let mut bytes = Vec::new();
        for (identifier, target) in [([0], index), ([1], folder.parent)] {
            let mut fields = Vec::new();
            if self.kind == Kind::Primary {
                // The note on Rock Ridge is the very first field of the root.
                fields = if index == 0 && identifier == [0] { rock_ridge() } else { Vec::new() };
                fields.extend(attributes(FOLDER, self.links(target)));
            }
            push(&mut bytes, &record(&identifier, place(target), true, &fields));
        }
        for (identifier, real, child) in &folder.children {
            let (target, is_folder, mode, links) = match child {
                Child::Folder(folder) => {
                    let at = self.places.get(folder).copied().unwrap_or_default();
                    (place(at), true, FOLDER, self.links(at))
                }
                Child::File(file) => {
                    let entry = &self.entries[*file];
                    ((files[*file], entry.size as u32), false, FILE | (entry.mode & 0o7777), 1)
                }
            };
            let mut fields = Vec::new();
            if self.kind == Kind::Primary {
                fields = attributes(mode, links);
                let used = record(identifier, target, is_folder, &fields).len();
                fields.extend(name(real, used, overflow));
            }
            push(&mut bytes, &record(identifier, target, is_folder, &fields));
        }
        bytes
    }

    /// Number of names of a folder: its own, its dot and the double dots in it.
    fn links(&self, index: usize) -> u32 {
        let inner = |child: &&(Vec<u8>, String, Child)| matches!(child.2, Child::Folder(_));
        2 + self.folders[index].children.iter().filter(inner).count() as u32
    }
}
