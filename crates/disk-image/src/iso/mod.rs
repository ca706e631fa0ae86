//! ISO 9660 images with Rock Ridge for Unix and Joliet for Windows, so that names arrive as they are.
//!
//! [`Iso::plan`] is pure: it decides where everything goes from names and sizes alone. [`Iso::write`] then streams
//! the contents. The same entries always give the same bytes; all times in an image are zero.

mod descriptors;
mod names;
mod records;
mod tree;
mod view;

use std::io::{self, Read, Write};

use tree::Tree;
use view::{Kind, View};

const SECTOR: u64 = 2048;
/// Images end at a multiple of this, so that they are whole disks with large sectors too.
const END: u64 = 4096;
/// Sectors after the last file, as other writers leave them: readers that look for labels or read ahead read that far,
/// and take a shorter image for none at all.
const PADDING: u64 = 150;
/// Sectors before the first descriptor, which are left to boot loaders.
const SYSTEM_AREA: u64 = 16;
/// The descriptors of the two sets of names, and the end of descriptors.
const DESCRIPTORS: u64 = 3;

/// A file of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path with `/` between folders, such as `openstack/latest/user_data`.
    pub path: String,
    /// Number of bytes.
    pub size: u64,
    /// Permissions, such as `0o644`.
    pub mode: u32,
}

/// Why an image cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum IsoError {
    /// The label is empty or too long.
    #[error("the label {0:?} does not have 1 to 32 bytes, or more than 16 if they are not all ASCII")]
    Label(String),
    /// A path is empty, absolute or has `.` or `..` in it.
    #[error("{0:?} cannot be the name of a file")]
    Name(String),
    /// Two entries have the same path, or one is the folder of another.
    #[error("{0:?} is there twice")]
    Twice(String),
    /// Folders lie too deep in each other.
    #[error("{0:?} is deeper than 8 folders")]
    Depth(String),
    /// A file or everything together is too large for the format.
    #[error("{0:?} is too large")]
    Size(String),
    /// A file was shorter or longer than was said.
    #[error("{0:?} changed while it was read")]
    Changed(String),
    /// The contents of a file could not be read.
    #[error("cannot read {path:?}: {source}")]
    Read {
        /// Path in the image.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The image could not be written.
    #[error("cannot write the image: {0}")]
    Write(io::Error),
}

/// An image of which all is decided but the contents of its files.
#[derive(Debug)]
pub struct Iso {
    entries: Vec<Entry>,
    /// What comes before the contents.
    head: Vec<u8>,
    size: u64,
}

impl Iso {
    /// Decides where everything goes in an image with this label.
    pub fn plan(label: &str, entries: Vec<Entry>) -> Result<Self, IsoError> {
        let tree = Tree::new(&entries)?;
        let mut next = SYSTEM_AREA + DESCRIPTORS;
        let mut take = |bytes: u64| {
            let at = next;
            next += bytes.div_ceil(SECTOR);
            at
        };
        let sets = [Kind::Primary, Kind::Joliet].map(|kind| Set::place(kind, &tree, &entries, &mut take));
        let files: Vec<u64> = entries.iter().map(|entry| take(entry.size)).collect();
        let end = ((next + PADDING) * SECTOR).next_multiple_of(END);
        let sectors = u32::try_from(end / SECTOR).map_err(|_| IsoError::Size(label.into()))?;
        let files: Vec<u32> = files.into_iter().map(|at| at as u32).collect();

        let mut head = Head::default();
        for (set, descriptor) in sets.iter().zip(SYSTEM_AREA..) {
            head.put(descriptor, set.descriptor(label, sectors)?);
            set.put(&mut head, &files);
        }
        head.put(SYSTEM_AREA + 2, descriptors::end());
        let start_of_files = files.first().map_or(next, |at| u64::from(*at));
        head.0.resize((start_of_files * SECTOR) as usize, 0);
        Ok(Self { entries, head: head.0, size: end })
    }

    /// Length of the image in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Writes the image; `open` gives the contents of an entry, by its number.
    pub fn write<R: Read>(
        &self,
        mut out: impl Write,
        mut open: impl FnMut(usize) -> io::Result<R>,
    ) -> Result<(), IsoError> {
        out.write_all(&self.head).map_err(IsoError::Write)?;
        let mut written = self.head.len() as u64;
        let mut buffer = vec![0; 64 << 10];
        for (index, entry) in self.entries.iter().enumerate() {
            let failed = |source| IsoError::Read { path: entry.path.clone(), source };
            copy(&mut open(index).map_err(failed)?, &mut out, entry, &mut buffer)?;
            let end = entry.size.next_multiple_of(SECTOR);
            zeros(&mut out, end - entry.size).map_err(IsoError::Write)?;
            written += end;
        }
        zeros(&mut out, self.size - written).map_err(IsoError::Write)?;
        out.flush().map_err(IsoError::Write)
    }
}

fn copy(
    from: &mut impl Read,
    out: &mut impl Write,
    entry: &Entry,
    buffer: &mut [u8],
) -> Result<(), IsoError> {
    let mut left = entry.size;
    loop {
        let length = match from.read(buffer) {
            Ok(length) => length as u64,
            Err(source) if source.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(IsoError::Read { path: entry.path.clone(), source }),
        };
        if length > left || (length == 0 && left > 0) {
            return Err(IsoError::Changed(entry.path.clone()));
        }
        if length == 0 {
            return Ok(());
        }
        out.write_all(&buffer[..length as usize]).map_err(IsoError::Write)?;
        left -= length;
    }
}

fn zeros(out: &mut impl Write, length: u64) -> io::Result<()> {
    io::copy(&mut io::repeat(0).take(length), out).map(|_| ())
}

/// A set of names and where it is in the image.
struct Set<'a> {
    kind: Kind,
    view: View<'a>,
    /// Path tables, little end and big end first.
    tables: [u32; 2],
    /// Place and length of each folder.
    folders: Vec<(u32, u32)>,
}

impl<'a> Set<'a> {
    fn place(kind: Kind, tree: &Tree, entries: &'a [Entry], mut take: impl FnMut(u64) -> u64) -> Self {
        let view = View::new(tree, entries, kind);
        let table = view.path_table(&[], false).len() as u64;
        let tables = [take(table) as u32, take(table) as u32];
        let nowhere = vec![0; entries.len()];
        let folders = view.folders(&[], &nowhere).into_iter().map(|extent| {
            let length = extent.length();
            (take(length + extent.overflow.len() as u64) as u32, length as u32)
        });
        Self { kind, tables, folders: folders.collect(), view }
    }

    fn descriptor(&self, label: &str, sectors: u32) -> Result<Vec<u8>, IsoError> {
        let table_size = self.view.path_table(&self.folders, false).len() as u32;
        let root = self.folders[0];
        descriptors::Volume { label, sectors, table_size, tables: self.tables, root }.descriptor(self.kind)
    }

    fn put(&self, head: &mut Head, files: &[u32]) {
        for (at, big_endian) in self.tables.into_iter().zip([false, true]) {
            head.put(u64::from(at), self.view.path_table(&self.folders, big_endian));
        }
        for (place, extent) in self.folders.iter().zip(self.view.folders(&self.folders, files)) {
            head.put(u64::from(place.0), extent.bytes());
        }
    }
}

/// Bytes from the start of the image, put together by sector.
#[derive(Default)]
struct Head(Vec<u8>);

impl Head {
    fn put(&mut self, sector: u64, bytes: Vec<u8>) {
        let at = (sector * SECTOR) as usize;
        if self.0.len() < at + bytes.len() {
            self.0.resize(at + bytes.len(), 0);
        }
        self.0[at..at + bytes.len()].copy_from_slice(&bytes);
    }
}
