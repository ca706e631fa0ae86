//! One layer of an image: a folder as a tar file that depends on nothing but its contents.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, Metadata};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::{lgetxattr, llistxattr, major, minor};
use rustix::io::Errno;
use tar::{Builder, EntryType, Header};

use super::capabilities;

/// What a layer holds.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    /// The folder that becomes the image's root.
    pub root: PathBuf,
    /// Who owns everything; without it, who owns it on the disk.
    pub owner: Option<Owner>,
    /// Who owns single paths of the image, such as `/var/run/kubevirt`, whatever the above says.
    pub owners: BTreeMap<PathBuf, Owner>,
    /// Capabilities of single programs of the image, such as `cap_net_bind_service`, besides those that files
    /// on the disk have.
    pub capabilities: BTreeMap<PathBuf, String>,
}

/// The numbers of a user and a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub user: u32,
    /// The group.
    pub group: u32,
}

impl std::str::FromStr for Owner {
    type Err = anyhow::Error;

    /// `USER:GROUP`, or one number for both.
    fn from_str(text: &str) -> Result<Self> {
        let (user, group) = text.split_once(':').unwrap_or((text, text));
        let number = |text: &str| text.parse().with_context(|| format!("owner {text:?} is no number"));
        Ok(Self { user: number(user)?, group: number(group)? })
    }
}

impl Layer {
    /// The folder as it is, but owned by root.
    pub fn of_root(root: &Path) -> Self {
        Self { root: root.to_owned(), owner: Some(Owner { user: 0, group: 0 }), ..Self::default() }
    }

    /// Writes the layer.
    pub fn write<W: Write>(&self, output: W) -> Result<W> {
        for path in self.owners.keys().chain(self.capabilities.keys()) {
            let file = self.root.join(path.strip_prefix("/").unwrap_or(path));
            fs::symlink_metadata(&file).with_context(|| format!("no {} in the image", path.display()))?;
        }
        let mut tar = Builder::new(output);
        self.append_folder(&mut tar, Path::new(""), &mut HashMap::new())?;
        Ok(tar.into_inner()?)
    }

    /// Appends what is in a folder, by name. The root itself is left out: it is often a private folder.
    fn append_folder<W: Write>(
        &self,
        tar: &mut Builder<W>,
        folder: &Path,
        links: &mut HashMap<(u64, u64), PathBuf>,
    ) -> Result<()> {
        let place = self.root.join(folder);
        let entries = fs::read_dir(&place).with_context(|| format!("read {}", place.display()))?;
        let mut names = entries.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>>>()?;
        names.sort();
        for name in names {
            let path = folder.join(name);
            let file = self.root.join(&path);
            let metadata = fs::symlink_metadata(&file)?;
            self.append(tar, &path, &file, &metadata, links)
                .with_context(|| format!("pack {}", file.display()))?;
            if metadata.is_dir() {
                self.append_folder(tar, &path, links)?;
            }
        }
        Ok(())
    }

    fn append<W: Write>(
        &self,
        tar: &mut Builder<W>,
        path: &Path,
        file: &Path,
        metadata: &Metadata,
        links: &mut HashMap<(u64, u64), PathBuf>,
    ) -> Result<()> {
        let mut header = Header::new_gnu();
        let owner = self.owner_of(path, metadata);
        header.set_uid(owner.user.into());
        header.set_gid(owner.group.into());
        header.set_mode(metadata.mode() & 0o7777);
        header.set_size(0);
        // The time is left at the epoch: when a file was copied here says nothing.

        let kind = metadata.file_type();
        if metadata.is_file()
            && metadata.nlink() > 1
            && let Some(first) = links.get(&(metadata.dev(), metadata.ino()))
        {
            header.set_entry_type(EntryType::Link);
            return Ok(tar.append_link(&mut header, path, first)?);
        }
        let attributes = self.attributes(path, file)?;
        tar.append_pax_extensions(attributes.iter().map(|(name, value)| (name.as_str(), value.as_slice())))?;
        if metadata.is_file() {
            links.insert((metadata.dev(), metadata.ino()), path.to_owned());
            header.set_entry_type(EntryType::Regular);
            header.set_size(metadata.len());
            tar.append_data(&mut header, path, File::open(file)?)?;
        } else if kind.is_symlink() {
            header.set_entry_type(EntryType::Symlink);
            tar.append_link(&mut header, path, fs::read_link(file)?)?;
        } else if kind.is_dir() {
            header.set_entry_type(EntryType::Directory);
            tar.append_data(&mut header, path, std::io::empty())?;
        } else {
            header.set_entry_type(match () {
                () if kind.is_char_device() => EntryType::Char,
                () if kind.is_block_device() => EntryType::Block,
                () if kind.is_fifo() => EntryType::Fifo,
                () => bail!("it is neither file, folder, link, device nor pipe"),
            });
            header.set_device_major(major(metadata.rdev()))?;
            header.set_device_minor(minor(metadata.rdev()))?;
            tar.append_data(&mut header, path, std::io::empty())?;
        }
        Ok(())
    }

    fn owner_of(&self, path: &Path, metadata: &Metadata) -> Owner {
        let single = self.owners.get(&Path::new("/").join(path)).copied();
        single.or(self.owner).unwrap_or(Owner { user: metadata.uid(), group: metadata.gid() })
    }

    /// The extended attributes that belong into an image, as records of the tar file.
    fn attributes(&self, path: &Path, file: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
        let mut attributes = BTreeMap::new();
        for name in names_of_attributes(file)? {
            // Others, such as labels of SELinux, are of the machine's and not of the file.
            if name == capabilities::ATTRIBUTE || name.starts_with("user.") {
                let mut value = vec![0; 1 << 16];
                let size = lgetxattr(file, name.as_str(), &mut value)?;
                value.truncate(size);
                attributes.insert(record(&name), value);
            }
        }
        if let Some(names) = self.capabilities.get(&Path::new("/").join(path)) {
            attributes.insert(record(capabilities::ATTRIBUTE), capabilities::attribute(names)?);
        }
        Ok(attributes)
    }
}

fn record(attribute: &str) -> String {
    format!("SCHILY.xattr.{attribute}")
}

fn names_of_attributes(file: &Path) -> Result<Vec<String>> {
    let mut list = vec![0; 1 << 16];
    let size = match llistxattr(file, &mut list) {
        Err(Errno::NOTSUP) => 0,
        size => size?,
    };
    let names = list[..size].split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// What a tar file says of one path.
    #[derive(Debug, Default, PartialEq)]
    struct Entry {
        kind: u8,
        owner: (u64, u64),
        mode: u32,
        time: u64,
        link: String,
        attributes: Vec<(String, Vec<u8>)>,
        text: String,
    }

    fn entries(layer: &[u8]) -> BTreeMap<String, Entry> {
        let mut found = BTreeMap::new();
        for entry in tar::Archive::new(layer).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let attributes = entry.pax_extensions().unwrap().map(|records| {
                let record =
                    |one: tar::PaxExtension| (one.key().unwrap().to_owned(), one.value_bytes().to_vec());
                records.map(|one| record(one.unwrap())).collect()
            });
            let link = entry.link_name().unwrap().unwrap_or_default().display().to_string();
            let path = entry.path().unwrap().display().to_string();
            let header = entry.header();
            let one = Entry {
                kind: header.entry_type().as_byte(),
                owner: (header.uid().unwrap(), header.gid().unwrap()),
                mode: header.mode().unwrap(),
                time: header.mtime().unwrap(),
                link,
                attributes: attributes.unwrap_or_default(),
                text,
            };
            assert!(found.insert(path, one).is_none());
        }
        found
    }

    fn root(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("kubevirt-rs-layer-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::write(root.join("bin/program"), "text").unwrap();
        fs::set_permissions(root.join("bin/program"), fs::Permissions::from_mode(0o4755)).unwrap();
        root
    }

    #[test]
    fn keeps_modes_links_and_long_names() {
        let root = root("links");
        let long = format!("bin/{}", "long-".repeat(40));
        symlink("program", root.join("bin/alias")).unwrap();
        symlink("/nowhere/".repeat(20), root.join("bin/broken")).unwrap();
        fs::hard_link(root.join("bin/program"), root.join("bin/same")).unwrap();
        fs::write(root.join(&long), "long").unwrap();
        let entries = entries(&Layer::of_root(&root).write(Vec::new()).unwrap());
        assert_eq!(
            entries.keys().filter(|path| path.as_str() != long).collect::<Vec<_>>(),
            ["bin", "bin/alias", "bin/broken", "bin/program", "bin/same"]
        );
        let program = &entries["bin/program"];
        assert_eq!((program.mode, program.owner, program.time), (0o4755, (0, 0), 0));
        assert_eq!(program.text, "text");
        assert_eq!((entries["bin/alias"].kind, entries["bin/alias"].link.as_str()), (b'2', "program"));
        assert_eq!(entries["bin/broken"].link, "/nowhere/".repeat(20));
        assert_eq!((entries["bin/same"].kind, entries["bin/same"].link.as_str()), (b'1', "bin/program"));
        assert_eq!(entries["bin"].kind, b'5');
        assert_eq!(entries[&long].text, "long");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn sets_owners_and_capabilities() {
        let root = root("owners");
        let mut layer = Layer::of_root(&root);
        layer.owners.insert("/bin".into(), "107".parse().unwrap());
        layer.capabilities.insert("/bin/program".into(), "cap_net_bind_service".into());
        let written = layer.write(Vec::new()).unwrap();
        let entries = entries(&written);
        assert_eq!(entries["bin"].owner, (107, 107));
        let expected = capabilities::attribute("cap_net_bind_service").unwrap();
        assert_eq!(
            entries["bin/program"].attributes,
            [("SCHILY.xattr.security.capability".into(), expected)]
        );

        layer.owners.insert("/none".into(), "1:2".parse().unwrap());
        assert!(layer.write(Vec::new()).unwrap_err().to_string().contains("/none"));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn takes_owners_and_attributes_from_the_disk() {
        let root = root("attributes");
        let program = root.join("bin/program");
        let metadata = fs::metadata(&program).unwrap();
        let set = |name: &str, value: &[u8]| {
            rustix::fs::setxattr(&program, name, value, rustix::fs::XattrFlags::empty()).is_ok()
        };
        let value = capabilities::attribute("cap_net_raw").unwrap();
        // Only root may set the one, and not every file system has the other.
        let expected: Vec<(String, Vec<u8>)> =
            [(capabilities::ATTRIBUTE, value.as_slice()), ("user.note", b"x y")]
                .into_iter()
                .filter(|(name, value)| set(name, value))
                .map(|(name, value)| (record(name), value.to_vec()))
                .collect();
        let layer = Layer { root: root.clone(), ..Layer::default() };
        let entries = entries(&layer.write(Vec::new()).unwrap());
        assert_eq!(entries["bin/program"].attributes, expected);
        assert_eq!(entries["bin/program"].owner, (metadata.uid().into(), metadata.gid().into()));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn depends_on_nothing_but_the_contents() {
        let (one, two) = (root("first"), root("second"));
        // Made in another order and at another time.
        fs::write(one.join("a"), "a").unwrap();
        fs::write(one.join("b"), "b").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
        fs::write(two.join("b"), "b").unwrap();
        fs::write(two.join("a"), "a").unwrap();
        let [first, second] = [&one, &two].map(|root| Layer::of_root(root).write(Vec::new()).unwrap());
        assert!(first == second);
        fs::remove_dir_all(one).unwrap();
        fs::remove_dir_all(two).unwrap();
    }

    #[test]
    fn reads_owners() {
        assert_eq!("107:36".parse::<Owner>().unwrap(), Owner { user: 107, group: 36 });
        assert_eq!("107".parse::<Owner>().unwrap(), Owner { user: 107, group: 107 });
        assert!("qemu".parse::<Owner>().is_err());
    }
}
