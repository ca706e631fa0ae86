//! Where the control groups of this process are, in either version, and whether memory ran out in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::read::{self, ReadError};

/// The folders of a process's control groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroups {
    /// Version 1: a folder for each controller.
    controllers: BTreeMap<String, PathBuf>,
    /// Version 2: one folder for all.
    unified: Option<PathBuf>,
}

/// A folder of a control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Folder<'a> {
    /// Of version 1, for one controller.
    V1(&'a Path),
    /// Of version 2.
    V2(&'a Path),
}

/// What became of memory in a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryEvents {
    /// Processes that were killed because memory ran out, so far.
    pub oom_kills: u64,
    /// Most bytes that the group may use.
    pub limit: Option<u64>,
}

/// Version 1 says "no limit" with the largest number of pages.
const NO_LIMIT: u64 = 1 << 62;

impl Cgroups {
    /// Finds those of this process.
    pub fn of_self() -> Result<Self, ReadError> {
        let groups = read::text(Path::new("/proc/self/cgroup"))?;
        let mounts = read::text(Path::new("/proc/self/mountinfo"))?;
        Ok(Self::parse(&groups, &mounts))
    }

    /// Finds them by what `/proc/PID/cgroup` and `/proc/PID/mountinfo` say.
    pub fn parse(groups: &str, mounts: &str) -> Self {
        let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
        let mut found = Self::default();
        for line in groups.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            if controllers.is_empty() {
                found.unified = folder(mounts.iter().filter(|mount| mount.controllers.is_none()), path);
            }
            for controller in controllers.split(',').filter(|name| !name.is_empty()) {
                let of_controller = mounts.iter().filter(|mount| mount.has(controller));
                if let Some(folder) = folder(of_controller, path) {
                    found.controllers.insert(controller.to_owned(), folder);
                }
            }
        }
        found
    }

    /// The same folders as seen by someone who has the root of these elsewhere, such as at `/proc/1/root`.
    #[must_use]
    pub fn below(self, root: &Path) -> Self {
        let moved = |path: PathBuf| root.join(path.strip_prefix("/").unwrap_or(&path));
        let controllers = self.controllers.into_iter().map(|(name, path)| (name, moved(path))).collect();
        Self { controllers, unified: self.unified.map(moved) }
    }

    /// The folder that has a controller's files. Of hosts with both versions, version 1 has the controllers.
    pub fn folder(&self, controller: &str) -> Option<Folder<'_>> {
        let v1 = self.controllers.get(controller).map(|path| Folder::V1(path));
        v1.or_else(|| self.unified.as_deref().map(Folder::V2))
    }

    /// What became of memory; none where the kernel does not say. When a process was killed, one more kill than
    /// before it was started tells why.
    pub fn memory_events(&self) -> Result<Option<MemoryEvents>, ReadError> {
        let (folder, events, limit) = match self.folder("memory") {
            None => return Ok(None),
            Some(Folder::V1(folder)) => (folder, "memory.oom_control", "memory.limit_in_bytes"),
            Some(Folder::V2(folder)) => (folder, "memory.events", "memory.max"),
        };
        // The root group has no limit and counts nothing.
        if !folder.join(events).exists() {
            return Ok(None);
        }
        let Some(oom_kills) = read::parsed(&folder.join(events), oom_kills)? else { return Ok(None) };
        let limit = read::parsed(&folder.join(limit), memory_limit)?;
        Ok(Some(MemoryEvents { oom_kills, limit }))
    }
}

/// Reads the number of kills; kernels before 4.13 do not count.
fn oom_kills(text: &str) -> Option<Option<u64>> {
    match read::field(text, "oom_kill") {
        Some(number) => number.parse().ok().map(Some),
        None => Some(None),
    }
}

fn memory_limit(text: &str) -> Option<Option<u64>> {
    match text.trim() {
        "max" => Some(None),
        number => number.parse().ok().map(|number| Some(number).filter(|number| *number < NO_LIMIT)),
    }
}

/// A place where control groups can be seen.
struct Mount {
    /// The group that is seen there.
    root: String,
    point: PathBuf,
    /// Controllers of version 1.
    controllers: Option<Vec<String>>,
}

impl Mount {
    /// Reads `ID PARENT DEVICE ROOT POINT OPTIONS… - TYPE SOURCE OPTIONS`, where it is one of control groups.
    fn parse(line: &str) -> Option<Self> {
        let (place, what) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, point) = (unescaped(place.next()?), unescaped(place.next()?));
        let mut what = what.split(' ');
        let controllers = match what.next()? {
            "cgroup2" => None,
            "cgroup" => Some(what.nth(1)?.split(',').map(str::to_owned).collect()),
            _ => return None,
        };
        Some(Self { root, point: point.into(), controllers })
    }

    fn has(&self, controller: &str) -> bool {
        self.controllers.as_ref().is_some_and(|names| names.iter().any(|name| name == controller))
    }

    /// Where a group is seen below this mount.
    fn below(&self, group: &str) -> Option<PathBuf> {
        let rest = Path::new(group).strip_prefix(&self.root).ok()?;
        let inside = !rest.components().any(|part| part == std::path::Component::ParentDir);
        inside.then(|| self.point.join(rest))
    }
}

/// A container may see its own group at the mount, while its path is told as the host sees it.
fn folder<'a>(mut mounts: impl Iterator<Item = &'a Mount> + Clone, group: &str) -> Option<PathBuf> {
    let below = mounts.clone().find_map(|mount| mount.below(group));
    let mut path = below.or_else(|| mounts.next().map(|mount| mount.point.clone()))?;
    // `join("")` leaves a slash behind.
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        path = path.components().collect();
    }
    Some(path)
}

/// The kernel writes the characters that would end a field in octal.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (code, character)| text.replace(code, character))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    const V2_CONTAINER: &str = "700 690 0:28 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n";
    const V1_CONTAINER: &str = "\
        643 642 0:33 /kubepods/pod1/abc /sys/fs/cgroup/cpuset ro,nosuid master:12 - cgroup cgroup rw,cpuset\n\
        644 642 0:34 /kubepods/pod1/abc /sys/fs/cgroup/memory ro,nosuid master:13 - cgroup cgroup rw,memory\n\
        645 642 0:35 / /proc rw - proc proc rw\n";
    const HYBRID: &str = "\
        30 29 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n\
        31 29 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        32 29 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";

    #[test]
    fn finds_folders() {
        let v1 = |path| Some(Folder::V1(Path::new(path)));
        let v2 = |path| Some(Folder::V2(Path::new(path)));
        let host_path = "3:cpuset:/kubepods/pod1/abc\n4:memory:/kubepods/pod1/abc\n";
        let hybrid = "4:memory:/a/b\n2:cpu,cpuacct:/\n1:name=systemd:/x\n0::/user\n";
        for (groups, mounts, controller, expected) in [
            ("0::/\n", V2_CONTAINER, "memory", v2("/sys/fs/cgroup")),
            ("0::/inner\n", V2_CONTAINER, "memory", v2("/sys/fs/cgroup/inner")),
            ("0::/../other\n", V2_CONTAINER, "memory", v2("/sys/fs/cgroup")),
            (host_path, V1_CONTAINER, "memory", v1("/sys/fs/cgroup/memory")),
            (host_path, V1_CONTAINER, "cpuset", v1("/sys/fs/cgroup/cpuset")),
            ("4:memory:/elsewhere\n", V1_CONTAINER, "memory", v1("/sys/fs/cgroup/memory")),
            (hybrid, HYBRID, "memory", v1("/sys/fs/cgroup/memory/a/b")),
            (hybrid, HYBRID, "cpuacct", v1("/sys/fs/cgroup/cpu,cpuacct")),
            (hybrid, HYBRID, "cpuset", v2("/sys/fs/cgroup/unified/user")),
            ("", HYBRID, "memory", None),
            ("0::/\n", "", "memory", None),
            ("nonsense\n::\n", "1 2 3 - cgroup\n - cgroup2", "memory", None),
        ] {
            let found = Cgroups::parse(groups, mounts);
            assert_eq!(found.folder(controller), expected, "{controller} of {groups:?}");
        }
    }

    #[test]
    fn reads_paths_with_spaces() {
        let found = Cgroups::parse("0::/\n", "7 6 0:2 / /mnt/my\\040groups rw - cgroup2 none rw\n");
        assert_eq!(found.folder("cpu"), Some(Folder::V2(Path::new("/mnt/my groups"))));
    }

    #[test]
    fn counts_kills() {
        let v1 = [
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
            ("memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        let v2 =
            [("memory.events", "low 0\nhigh 0\nmax 9\noom 3\noom_kill 3\n"), ("memory.max", "1048576\n")];
        let open_ended = [("memory.events", "oom_kill 0\n"), ("memory.max", "max\n")];
        let silent = [("memory.oom_control", "under_oom 0\n"), ("memory.limit_in_bytes", "4096\n")];
        for (kind, files, expected) in [
            ("memory", &v1[..], Some(MemoryEvents { oom_kills: 2, limit: None })),
            ("", &v2, Some(MemoryEvents { oom_kills: 3, limit: Some(1 << 20) })),
            ("", &open_ended, Some(MemoryEvents::default())),
            ("memory", &silent, None),
            ("", &[], None),
        ] {
            let folder = testing::Folder::of(files);
            let point = folder.path().display();
            let mount = match kind {
                "" => format!("1 0 0:1 / {point} rw - cgroup2 none rw"),
                name => format!("1 0 0:1 / {point} rw - cgroup none rw,{name}"),
            };
            let found = Cgroups::parse(&format!("1:{kind}:/\n"), &mount);
            assert_eq!(found.memory_events().unwrap(), expected, "{files:?}");
        }
        let broken = testing::Folder::of(&[("memory.events", "oom_kill many\n"), ("memory.max", "max")]);
        let mount = format!("1 0 0:1 / {} rw - cgroup2 none rw", broken.path().display());
        assert!(matches!(Cgroups::parse("0::/", &mount).memory_events(), Err(ReadError::Text { .. })));
    }

    #[test]
    fn finds_those_of_this_process() {
        let found = Cgroups::of_self().unwrap();
        println!("{found:?}: {:?}", found.memory_events().unwrap());
        for folder in found.controllers.values().chain(&found.unified) {
            assert!(folder.is_dir(), "{}", folder.display());
        }
    }
}
