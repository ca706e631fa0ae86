//! Whatever a machine's arguments name, its needs name too.

use kubevirt_domain::needs::{Need, needs};
use kubevirt_domain::{Layout, convert, qemu};

use crate::draft::Draft;
use crate::support::cases;

/// What a need is about.
fn path(need: &Need) -> &str {
    match need {
        Need::Folder(path) | Need::Readable(path) | Need::Socket(path) | Need::Device(path) => path,
        Need::File(file) => &file.path,
        Need::Copy { to, .. } => to,
        Need::Image { location, .. } => location.path(),
        Need::Overlay { path, .. } | Need::Tracker { path, .. } => path,
    }
}

/// Paths that an argument names: whole JSON strings, and values of `a=b,c=d`.
fn named(argument: &str) -> Vec<String> {
    let parts = argument.split([',', '"', '=', ' ']);
    let paths = parts.map(|part| part.strip_prefix("unix:").unwrap_or(part));
    paths.filter(|part| part.starts_with('/') && part.len() > 1).map(str::to_owned).collect()
}

#[test]
fn nothing_that_arguments_name_is_missing() {
    for case in cases() {
        let Ok(domain) = convert(&case.vmi, &case.host, &case.qemu, &Layout::default()) else { continue };
        let list = needs(&domain);
        let covered = |wanted: &str| {
            list.iter().any(|need| {
                let parent = wanted.rsplit_once('/').map_or("", |(parent, _)| parent);
                path(need) == wanted || matches!(need, Need::Folder(folder) if folder == parent)
            })
        };
        for argument in qemu::arguments(&domain) {
            let is_own = |path: &String| !path.starts_with("/sys/") && path != "/dev/urandom";
            for path in named(&argument).into_iter().filter(is_own) {
                assert!(covered(&path), "{}: {path} in {argument}", case.name);
            }
        }
    }
}

#[test]
fn images_come_before_what_lies_over_them() {
    let case = cases().into_iter().find(|case| case.name == "volumes").unwrap();
    let domain = convert(&case.vmi, &case.host, &case.qemu, &Layout::default()).unwrap();
    let list = needs(&domain);
    let mut overlays = 0;
    for (index, need) in list.iter().enumerate() {
        if let Need::Overlay { base, .. } = need {
            overlays += 1;
            let before = &list[..index];
            let is_base = |need: &Need| matches!(need, Need::Image { location, read_only: true, .. } if location == base);
            assert!(before.iter().any(is_base), "{need:?}");
        }
    }
    assert!(overlays > 1);
    let is_folder = |need: &Need| matches!(need, Need::Folder(_));
    assert!(list.iter().skip_while(|need| is_folder(need)).all(|need| !is_folder(need)));
}

#[test]
fn events_lead_back_to_disks_and_cards() {
    let domain = Draft::new().domain();
    let path = "/machine/peripheral/disk-root/virtio-backend";
    for device in ["disk-root", path] {
        assert_eq!(qemu::disk_of_device(&domain, device).unwrap().name, "root");
    }
    assert_eq!(qemu::disk_of_node(&domain, "v-root-file").unwrap().name, "root");
    assert_eq!(qemu::interface_of_device(&domain, "net-default").unwrap().name, "default");
    assert!(qemu::disk_of_device(&domain, "disk-roo").is_none());
    assert!(qemu::disk_of_node(&domain, "v-other").is_none());
}
