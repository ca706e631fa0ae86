//! FAT file systems, made in memory: the same input gives the same bytes.

use std::io::{Cursor, Write};

use anyhow::{Context, Result};
use fatfs::{FatType, FileSystem, FormatVolumeOptions, FsOptions};

/// A small disk with a label and files, as cloud-init reads: `cidata` with `user-data` and `meta-data`, or
/// `config-2` with `openstack/latest/user_data` and `openstack/latest/meta_data.json`.
pub fn seed(label: &str, files: &[(&str, &[u8])]) -> Result<Vec<u8>> {
    image(label, files, 0)
}

/// A file system of at least `least` bytes. Labels have at most eleven bytes.
pub(crate) fn image(label: &str, files: &[(&str, &[u8])], least: usize) -> Result<Vec<u8>> {
    const CLUSTER: u32 = 32768;
    let used: usize = files.iter().map(|(_, content)| content.len().next_multiple_of(CLUSTER as usize)).sum();
    // Room for the tables and folders, and never so few clusters that it would have to be FAT12.
    let size = (used + used / 256 + (1 << 20)).max(least).max(20 << 20).next_multiple_of(1 << 20);
    let mut name = [b' '; 11];
    for (to, from) in name.iter_mut().zip(label.bytes()) {
        *to = from;
    }
    let mut disk = Cursor::new(vec![0; size]);
    let options = FormatVolumeOptions::new()
        .volume_id(0x7e57_9e57)
        .volume_label(name)
        .fat_type(FatType::Fat12)
        .bytes_per_cluster(CLUSTER);
    fatfs::format_volume(&mut disk, options).context("format")?;
    let system = FileSystem::new(&mut disk, FsOptions::new()).context("open what was just formatted")?;
    for (path, content) in files {
        let mut folder = system.root_dir();
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_some() {
                folder = folder.create_dir(part).with_context(|| format!("make {path}"))?;
            } else {
                let mut file = folder.create_file(part).with_context(|| format!("make {path}"))?;
                file.write_all(content).with_context(|| format!("write {path}"))?;
            }
        }
    }
    system.unmount().context("finish")?;
    Ok(disk.into_inner())
}

/// Where the content of files starts in a file system with short tables: after its head, the tables and the root.
pub(crate) fn clusters_start(image: &[u8]) -> usize {
    let number = |at: usize| usize::from(u16::from_le_bytes([image[at], image[at + 1]]));
    let (sector, head, tables, root, table) = (11, 14, usize::from(image[16]), 17, 22);
    (number(head) + tables * number(table)) * number(sector) + number(root) * 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_holds_its_files_and_is_always_the_same() {
        let files: [(&str, &[u8]); 2] = [("user-data", b"#cloud-config\n"), ("a/b/c", b"deep")];
        let one = seed("cidata", &files).unwrap();
        assert!(one == seed("cidata", &files).unwrap());
        let system = FileSystem::new(Cursor::new(one), FsOptions::new()).unwrap();
        assert_eq!(system.volume_label(), "cidata");
        let mut content = String::new();
        std::io::Read::read_to_string(&mut system.root_dir().open_file("a/b/c").unwrap(), &mut content)
            .unwrap();
        assert_eq!(content, "deep");
    }

    #[test]
    fn files_start_at_clusters() {
        let image = seed("cidata", &[("file", b"the first cluster")]).unwrap();
        let start = image.windows(17).position(|window| window == b"the first cluster");
        assert_eq!(start, Some(clusters_start(&image)));
    }
}
