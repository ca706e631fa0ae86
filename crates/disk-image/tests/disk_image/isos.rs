//! ISO images, as libarchive reads them with each set of names.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use kubevirt_disk_image::iso::{Entry, Iso, IsoError};

use crate::folder::Folder;
use crate::programs::run;

fn entry(path: &str, size: u64) -> Entry {
    Entry { path: path.into(), size, mode: 0o640 }
}

fn write(path: &Path, label: &str, files: &[(&str, &[u8])]) {
    let entries = files.iter().map(|(path, bytes)| entry(path, bytes.len() as u64)).collect();
    let iso = Iso::plan(label, entries).unwrap();
    iso.write(File::create(path).unwrap(), |index| Ok(files[index].1)).unwrap();
    assert_eq!(fs::metadata(path).unwrap().len(), iso.size());
}

/// Names of files in an image, by one of the sets of names, sorted.
fn list(path: &Path, options: &str) -> Vec<String> {
    let said = run("bsdtar", ["--options", options, "-tf", path.to_str().unwrap()]);
    let mut names: Vec<_> = said.lines().filter(|name| *name != ".").map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn cloud_init_seeds_have_their_names_and_contents() {
    let folder = Folder::new();
    let path = folder.join("seed.iso");
    let files: &[(&str, &[u8])] = &[
        ("openstack/latest/meta_data.json", b"{}"),
        ("openstack/latest/user_data", &[b'x'; 5000]),
        ("user-data", b"#cloud-config\n"),
        ("User-Data", b"other"),
        ("empty", b""),
        ("network-config", b"version: 2\n"),
    ];
    write(&path, "config-2", files);
    let mut expected: Vec<String> = files.iter().map(|(name, _)| (*name).into()).collect();
    expected.extend(["openstack".into(), "openstack/latest".into()]);
    expected.sort();
    assert_eq!(list(&path, "iso9660:!joliet"), expected, "Rock Ridge");
    assert_eq!(list(&path, "iso9660:!rockridge"), expected, "Joliet");
    for options in ["iso9660:!joliet", "iso9660:!rockridge"] {
        for (name, bytes) in files {
            let said = run("bsdtar", ["--options", options, "-xOf", path.to_str().unwrap(), name]);
            assert_eq!(said.as_bytes(), *bytes, "{options} {name}");
        }
    }
    let long = run("bsdtar", ["--options", "iso9660:!joliet", "-tvf", path.to_str().unwrap()]);
    assert!(
        long.lines().any(|line| line.starts_with("-rw-r-----") && line.ends_with(" user-data")),
        "{long}"
    );
    assert!(
        long.lines().any(|line| line.starts_with("drwxr-xr-x") && line.ends_with(" openstack")),
        "{long}"
    );
}

#[test]
fn labels_stand_where_readers_look() {
    let folder = Folder::new();
    let path = folder.join("seed.iso");
    for label in ["cidata", "config-2", "unattendCD", "a label of exactly 32 characters", "größe"] {
        write(&path, label, &[("a", b"a")]);
        let image = fs::read(&path).unwrap();
        let seen = String::from_utf8_lossy(&image[0x8028..0x8048]).into_owned();
        assert_eq!(seen.trim_end(), label);
        let wide: Vec<u16> =
            image[0x8828..0x8848].chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
        let short: String = label.chars().take(16).collect();
        assert_eq!(String::from_utf16(&wide).unwrap().trim_end(), short.trim_end());
        assert_eq!(image.len() % 4096, 0);
    }
    for label in ["", "a label that has 33 characters, so", "ääääääääääääääääa"] {
        assert!(matches!(Iso::plan(label, Vec::new()), Err(IsoError::Label(_))), "{label}");
    }
}

#[test]
fn long_names_and_full_folders_work() {
    let folder = Folder::new();
    let path = folder.join("big.iso");
    let mut names: Vec<String> =
        (0..400).map(|number| format!("folder/key-number-{number:04}.yaml")).collect();
    names.extend((100..=255).map(|length| "n".repeat(length)));
    names.push("a/b/c/d/e/f/g/deepest".into());
    names.push("größe-😀.txt".into());
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), name.as_bytes())).collect();
    write(&path, "cfgdata", &files);
    let mut expected = names.clone();
    expected.extend(
        ["folder", "a", "a/b", "a/b/c", "a/b/c/d", "a/b/c/d/e", "a/b/c/d/e/f", "a/b/c/d/e/f/g"]
            .map(Into::into),
    );
    expected.sort();
    let all = run("bsdtar", ["--options", "iso9660:!joliet,hdrcharset=UTF-8", "-tf", path.to_str().unwrap()]);
    assert_eq!(all.lines().filter(|line| *line != ".").count(), expected.len());
    let out = folder.join("out");
    fs::create_dir(&out).unwrap();
    run(
        "bsdtar",
        ["-xf", path.to_str().unwrap(), "-C", out.to_str().unwrap(), "--options", "iso9660:!joliet"],
    );
    for name in names.iter().filter(|name| name.is_ascii()) {
        assert_eq!(fs::read(out.join(name)).unwrap(), name.as_bytes(), "{name}");
    }
    assert_eq!(list(&path, "iso9660:!rockridge").len(), expected.len(), "Joliet has as many");
}

#[test]
fn the_same_entries_give_the_same_bytes() {
    let folder = Folder::new();
    let (one, two) = (folder.join("one"), folder.join("two"));
    for path in [&one, &two] {
        write(path, "cidata", &[("user-data", b"x"), ("meta-data", b"y")]);
    }
    assert_eq!(fs::read(one).unwrap(), fs::read(two).unwrap());
}

#[test]
fn an_image_without_files_is_one_too() {
    let folder = Folder::new();
    let path = folder.join("empty.iso");
    write(&path, "cfgdata", &[]);
    assert!(list(&path, "iso9660:!joliet").is_empty());
}

#[test]
fn large_files_are_streamed() {
    let folder = Folder::new();
    let path = folder.join("large.iso");
    let size = 300 << 20;
    let iso = Iso::plan("cfgdata", vec![entry("large", size), entry("small", 3)]).unwrap();
    let mut count = Counter::default();
    iso.write(&mut count, |index| {
        let (byte, length) = if index == 0 { (1, size) } else { (2, 3) };
        Ok(std::io::repeat(byte).take(length))
    })
    .unwrap();
    assert_eq!(count.total, iso.size());
    assert!(count.largest <= 1 << 20, "{}", count.largest);
    assert!(!path.exists());
}

/// Counts what is written.
#[derive(Default)]
struct Counter {
    total: u64,
    largest: usize,
}

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.total += bytes.len() as u64;
        self.largest = self.largest.max(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn entries_that_cannot_be_are_errors() {
    let plan =
        |paths: &[&str]| Iso::plan("x", paths.iter().map(|path| entry(path, 1)).collect()).unwrap_err();
    for path in ["", "/etc/passwd", "a//b", "../up", "a/../b", ".", "a/", "nul\0"] {
        assert!(matches!(plan(&[path]), IsoError::Name(_)), "{path:?}");
    }
    assert!(matches!(plan(&["a", "a"]), IsoError::Twice(_)));
    assert!(matches!(plan(&["a", "a/b"]), IsoError::Twice(_)));
    assert!(matches!(plan(&["a/b", "a"]), IsoError::Twice(_)));
    assert!(matches!(plan(&["1/2/3/4/5/6/7/8/9"]), IsoError::Depth(_)));
    assert!(matches!(Iso::plan("x", vec![entry("a", 1 << 32)]), Err(IsoError::Size(_))));

    let iso = Iso::plan("x", vec![entry("a", 2)]).unwrap();
    for bytes in [&b"1"[..], b"123", b""] {
        let error = iso.write(std::io::sink(), |_| Ok(bytes)).unwrap_err();
        assert!(matches!(error, IsoError::Changed(_)), "{error}");
    }
    let missing = iso.write(std::io::sink(), |_| File::open("/none")).unwrap_err();
    assert!(matches!(missing, IsoError::Read { .. }), "{missing}");
}
