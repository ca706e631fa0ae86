//! Version 2: a program that the kernel asks at each use of a device.
//!
//! Of several programs all must say yes, so the one of the container runtime is replaced.
#![expect(unsafe_code, reason = "no library speaks bpf(2) in so few lines")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use super::program::Instruction;

const PROG_LOAD: u32 = 5;
const PROG_ATTACH: u32 = 8;
const PROG_DETACH: u32 = 9;
const PROG_GET_FD_BY_ID: u32 = 13;
const OBJ_GET_INFO_BY_FD: u32 = 15;
const PROG_QUERY: u32 = 16;

const TYPE_CGROUP_DEVICE: u32 = 15;
const ATTACH_CGROUP_DEVICE: u32 = 6;
const ALLOW_OVERRIDE: u32 = 1;
const ALLOW_MULTI: u32 = 2;
const REPLACE: u32 = 4;

/// The most programs that the kernel attaches to one group.
const MOST: usize = 64;

/// What the kernel calls a program that does the same.
type Tag = [u8; 8];

/// Makes the program the only one that decides for a group. Whether that changed anything is returned.
pub fn set(folder: &Path, program: &[Instruction]) -> io::Result<bool> {
    let group = File::open(folder)?;
    let new = load(program)?;
    let (flags, ids) = attached(&group)?;
    let olds = ids.iter().map(|id| by_id(*id)).collect::<io::Result<Vec<_>>>()?;
    if let [old] = &olds[..]
        && tag(old)? == tag(&new)?
    {
        return Ok(false);
    }
    if olds.is_empty() {
        attach(&group, &new, ALLOW_MULTI, None)?;
    } else if flags & ALLOW_MULTI == 0 {
        // There can be only one, whose place the new one takes.
        attach(&group, &new, flags & ALLOW_OVERRIDE, None)?;
    } else if olds.len() != 1 || attach(&group, &new, ALLOW_MULTI | REPLACE, Some(&olds[0])).is_err() {
        attach(&group, &new, ALLOW_MULTI, None)?;
        for old in &olds {
            detach(&group, old)?;
        }
    }
    Ok(true)
}

#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel: u32,
    flags: u32,
    name: [u8; 16],
}

#[repr(C)]
#[derive(Default)]
struct Attach {
    group: u32,
    program: u32,
    kind: u32,
    flags: u32,
    replaced: u32,
}

#[repr(C)]
#[derive(Default)]
struct Query {
    group: u32,
    kind: u32,
    flags: u32,
    attach_flags: u32,
    ids: u64,
    count: u32,
    padding: u32,
}

#[repr(C)]
#[derive(Default)]
struct ById {
    id: u32,
    next: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct About {
    program: u32,
    length: u32,
    info: u64,
}

/// The beginning of what the kernel tells of a program.
#[repr(C)]
#[derive(Default)]
struct Info {
    kind: u32,
    id: u32,
    tag: Tag,
}

fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let mut order = Load {
        kind: TYPE_CGROUP_DEVICE,
        count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        name: *b"kubevirt_device\0",
        ..Load::default()
    };
    let fd = call(PROG_LOAD, &mut order)?;
    // SAFETY: the kernel just opened it, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn attach(group: &File, program: &OwnedFd, flags: u32, replaced: Option<&OwnedFd>) -> io::Result<()> {
    let mut order = Attach {
        group: group.as_raw_fd() as u32,
        program: program.as_raw_fd() as u32,
        kind: ATTACH_CGROUP_DEVICE,
        flags,
        replaced: replaced.map_or(0, |fd| fd.as_raw_fd() as u32),
    };
    call(PROG_ATTACH, &mut order).map(drop)
}

fn detach(group: &File, program: &OwnedFd) -> io::Result<()> {
    let (group, program) = (group.as_raw_fd() as u32, program.as_raw_fd() as u32);
    let mut order = Attach { group, program, kind: ATTACH_CGROUP_DEVICE, ..Attach::default() };
    call(PROG_DETACH, &mut order).map(drop)
}

/// How programs are attached to a group, and which.
fn attached(group: &File) -> io::Result<(u32, Vec<u32>)> {
    let mut ids = vec![0_u32; MOST];
    let mut order = Query {
        group: group.as_raw_fd() as u32,
        kind: ATTACH_CGROUP_DEVICE,
        ids: ids.as_mut_ptr() as u64,
        count: MOST as u32,
        ..Query::default()
    };
    call(PROG_QUERY, &mut order)?;
    ids.truncate(order.count as usize);
    Ok((order.attach_flags, ids))
}

fn by_id(id: u32) -> io::Result<OwnedFd> {
    let fd = call(PROG_GET_FD_BY_ID, &mut ById { id, ..ById::default() })?;
    // SAFETY: the kernel just opened it, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn tag(program: &OwnedFd) -> io::Result<Tag> {
    let mut info = Info::default();
    let mut order = About {
        program: program.as_raw_fd() as u32,
        length: size_of::<Info>() as u32,
        info: (&raw mut info) as u64,
    };
    call(OBJ_GET_INFO_BY_FD, &mut order)?;
    Ok(info.tag)
}

fn call<T>(command: u32, order: &mut T) -> io::Result<i32> {
    // SAFETY: the order has the layout that the kernel knows for this command, and all that it points at lives
    // while the caller's values do, which is longer than the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(order), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    use rustix::fs::makedev;

    use super::*;
    use crate::cgroup::{Cgroups, Folder};
    use crate::device_rules::{Rule, of_every_container, program::assemble};

    struct Group(PathBuf);

    impl Group {
        /// A group below our own, where the kernel has them in version 2.
        fn new() -> Option<Self> {
            let own = Cgroups::of_self().unwrap();
            // No controller has this name, so it is looked for only in version 2.
            let Some(Folder::V2(folder)) = own.folder("none") else { return None };
            let path = folder.join(format!("kubevirt-test-{}", std::process::id()));
            fs::create_dir(&path).ok()?;
            Some(Self(path))
        }

        /// Whether a process of the group may read a device.
        fn may_read(&self, device: &str) -> bool {
            let script =
                format!("echo $$ > {}/cgroup.procs && exec head -c 1 {device} > /dev/null", self.0.display());
            Command::new("sh").arg("-c").arg(script).output().unwrap().status.success()
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            let _ = fs::remove_dir(&self.0);
        }
    }

    #[test]
    fn the_kernel_takes_the_program_and_obeys_it() {
        let Some(group) = Group::new() else {
            println!("left out: no control groups of version 2 that we may change");
            return;
        };
        let all = assemble(&of_every_container());
        match set(&group.0, &all) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS | libc::EINVAL)) => {
                println!("left out: the kernel does not take programs from us: {error}");
                return;
            }
            changed => assert!(changed.unwrap()),
        }
        assert!(!set(&group.0, &all).unwrap(), "the same again changes nothing");
        assert!(group.may_read("/dev/zero"));
        let fewer = assemble(&[Rule::character(makedev(1, 3))]);
        assert!(set(&group.0, &fewer).unwrap());
        assert!(!group.may_read("/dev/zero"));
        let both = assemble(&[Rule::character(makedev(1, 3)), Rule::character(makedev(1, 5))]);
        assert!(set(&group.0, &both).unwrap());
        assert!(group.may_read("/dev/zero"));
        let (_, ids) = attached(&File::open(&group.0).unwrap()).unwrap();
        assert_eq!(ids.len(), 1);
        // A runtime's own second program does not stay either.
        attach(&File::open(&group.0).unwrap(), &load(&fewer).unwrap(), ALLOW_MULTI, None).unwrap();
        assert!(!group.may_read("/dev/zero"));
        assert!(set(&group.0, &both).unwrap());
        assert!(group.may_read("/dev/zero"));
    }
}
