//! Makes and opens taps: the guest's end of a network cable.
#![expect(unsafe_code, reason = "the tun driver is spoken to by ioctl")]

use std::{
    ffi::c_int,
    fs::{File, OpenOptions},
    io,
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt},
};

use rustix::{
    fs::OFlags,
    ioctl::{IntegerSetter, Opcode, Setter, ioctl, opcode},
};

use crate::error::may_pass;

const DEVICE: &str = "/dev/net/tun";

const TAP: u16 = 0x2;
const NO_PACKET_INFO: u16 = 0x1000;
const VIRTIO_HEADER: u16 = 0x4000;
const MULTI_QUEUE: u16 = 0x0100;

const SET_INTERFACE: Opcode = opcode::write::<c_int>(b'T', 202);
const SET_PERSISTENT: Opcode = opcode::write::<c_int>(b'T', 203);
const SET_OWNER: Opcode = opcode::write::<c_int>(b'T', 204);
const SET_GROUP: Opcode = opcode::write::<c_int>(b'T', 206);

/// The kernel's `struct ifreq`, as far as the tun driver reads it.
#[repr(C)]
struct InterfaceFlags {
    name: [u8; 16],
    flags: u16,
    padding: [u8; 22],
}

/// Opens a tap that phase 1 made, once for each queue. Only its owner may.
///
/// QEMU takes the descriptors as `-netdev tap,fds=…`.
pub fn open(name: &str, queues: u32, multi_queue: bool) -> io::Result<Vec<OwnedFd>> {
    (0..queues.max(1)).map(|_| attach(name, multi_queue).map(OwnedFd::from)).collect()
}

/// Makes a tap that outlives us and belongs to the user and group `owner`.
///
/// It persists only from the last step on, so that a half-made tap never stays behind.
pub(crate) fn create(name: &str, multi_queue: bool, owner: u32) -> io::Result<()> {
    let tap = attach(name, multi_queue)?;
    // SAFETY: these three take a plain number and touch no memory of ours.
    unsafe {
        ioctl(&tap, IntegerSetter::<SET_OWNER>::new_usize(owner as usize))?;
        ioctl(&tap, IntegerSetter::<SET_GROUP>::new_usize(owner as usize))?;
        ioctl(&tap, IntegerSetter::<SET_PERSISTENT>::new_usize(1))?;
    }
    Ok(())
}

fn attach(name: &str, multi_queue: bool) -> io::Result<File> {
    let flags = TAP | NO_PACKET_INFO | VIRTIO_HEADER | if multi_queue { MULTI_QUEUE } else { 0 };
    let mut request = InterfaceFlags { name: [0; 16], flags, padding: [0; 22] };
    if name.len() >= request.name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("the tap name {name} is too long")));
    }
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(DEVICE)
        .map_err(named)?;
    // SAFETY: the driver reads a `struct ifreq`, and `request` has its size and layout.
    unsafe { ioctl(&device, Setter::<SET_INTERFACE, InterfaceFlags>::new(request))? };
    Ok(device)
}

/// What this process lacks has nothing to do with the device.
fn named(error: io::Error) -> io::Error {
    if may_pass(&error) {
        return error;
    }
    io::Error::new(error.kind(), format!("cannot open {DEVICE}: {error}"))
}
