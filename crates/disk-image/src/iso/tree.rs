//! Folders and files of an image.

use std::collections::{BTreeMap, HashSet, VecDeque};

use super::{Entry, IsoError};

/// Folders can lie this deep, the root included.
const DEEPEST: usize = 8;

/// All folders; the first one is the root.
pub struct Tree {
    pub folders: Vec<Folder>,
}

/// A folder and what is in it.
#[derive(Default)]
pub struct Folder {
    /// What is in it, by name.
    pub children: BTreeMap<String, Child>,
}

/// What is in a folder, by number.
#[derive(Clone, Copy)]
pub enum Child {
    Folder(usize),
    File(usize),
}

impl Tree {
    pub fn new(entries: &[Entry]) -> Result<Self, IsoError> {
        let mut tree = Self { folders: vec![Folder::default()] };
        for (index, entry) in entries.iter().enumerate() {
            tree.add(index, entry)?;
            // Path tables number folders with 16 bits.
            if tree.folders.len() > usize::from(u16::MAX) {
                return Err(IsoError::Size(entry.path.clone()));
            }
        }
        Ok(tree)
    }

    fn add(&mut self, index: usize, entry: &Entry) -> Result<(), IsoError> {
        // The length of a file is a number of 32 bits.
        if u32::try_from(entry.size).is_err() {
            return Err(IsoError::Size(entry.path.clone()));
        }
        let parts: Vec<&str> = entry.path.split('/').collect();
        if parts.iter().any(|part| !is_name(part)) {
            return Err(IsoError::Name(entry.path.clone()));
        }
        if parts.len() > DEEPEST {
            return Err(IsoError::Depth(entry.path.clone()));
        }
        let mut at = 0;
        for (depth, part) in parts.iter().enumerate() {
            let is_file = depth + 1 == parts.len();
            let next = self.folders.len();
            match self.folders[at].children.get(*part) {
                Some(Child::Folder(folder)) if !is_file => at = *folder,
                Some(_) => return Err(IsoError::Twice(entry.path.clone())),
                None if is_file => {
                    self.folders[at].children.insert((*part).into(), Child::File(index));
                }
                None => {
                    self.folders[at].children.insert((*part).into(), Child::Folder(next));
                    self.folders.push(Folder::default());
                    at = next;
                }
            }
        }
        Ok(())
    }
}

fn is_name(part: &str) -> bool {
    !matches!(part, "" | "." | "..") && part.len() <= 255 && !part.contains('\0')
}

/// A folder as one of the two sets of names has it.
pub struct Named {
    /// Number in the tree.
    pub folder: usize,
    /// Place of the parent among the folders.
    pub parent: usize,
    /// Its name.
    pub identifier: Vec<u8>,
    /// What is in it, in order: identifier, real name, what it is.
    pub children: Vec<(Vec<u8>, String, Child)>,
}

/// All folders in the order of path tables: level by level, then as their parents, then by name.
pub fn in_order(tree: &Tree, identify: impl Fn(&str, bool, &mut HashSet<Vec<u8>>) -> Vec<u8>) -> Vec<Named> {
    let mut order = Vec::with_capacity(tree.folders.len());
    let mut waiting = VecDeque::from([(0, 0, vec![0])]);
    while let Some((folder, parent, identifier)) = waiting.pop_front() {
        let place = order.len();
        let mut taken = HashSet::new();
        let mut children: Vec<_> = tree.folders[folder]
            .children
            .iter()
            .map(|(name, child)| {
                let is_file = matches!(child, Child::File(_));
                (identify(name, is_file, &mut taken), name.clone(), *child)
            })
            .collect();
        children.sort_by(|a, b| a.0.cmp(&b.0));
        for (identifier, _, child) in &children {
            if let Child::Folder(folder) = child {
                waiting.push_back((*folder, place, identifier.clone()));
            }
        }
        order.push(Named { folder, parent, identifier, children });
    }
    order
}
