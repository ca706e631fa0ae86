//! A disk that boots with next to no memory, for machines that are too small for any Linux of today.
//!
//! Debian's kernel unpacks itself above 16 MiB and needs 51 MiB there, so it does not start with less than 68 MiB.

const SECTOR: usize = 512;
/// A disk is never smaller.
const SIZE: usize = 1 << 20;

/// What the BIOS loads to 0x7c00 and runs: it greets on the serial port, and waits for ever.
#[rustfmt::skip]
const PROGRAM: [u8; 39] = [
    0x31, 0xc0,       // xor ax, ax
    0x8e, 0xd8,       // mov ds, ax
    0x8e, 0xd0,       // mov ss, ax
    0xbc, 0x00, 0x7c, // mov sp, 0x7c00
    0xb8, 0xe3, 0x00, // mov ax, 0x00e3       9600 baud, 8 bits
    0x31, 0xd2,       // xor dx, dx           the first port
    0xcd, 0x14,       // int 0x14
    0xbe, 0x00, 0x7d, // mov si, GREETING
    0xe8, 0x03, 0x00, // call print
    0xf4,             // end: hlt
    0xeb, 0xfd,       // jmp end
    0xac,             // print: lodsb
    0x84, 0xc0,       // test al, al
    0x74, 0x08,       // jz done
    0xb4, 0x01,       // mov ah, 1            write
    0x31, 0xd2,       // xor dx, dx
    0xcd, 0x14,       // int 0x14
    0xeb, 0xf3,       // jmp print
    0xc3,             // done: ret
];
const GREETING: &[u8] = b"\r\nWelcome to the test guest\r\n\r\ntiny login: \r\n\0";

/// The disk.
pub fn tiny() -> Vec<u8> {
    let mut disk = vec![0; SIZE];
    let parts: [(usize, &[u8]); 3] = [(0, &PROGRAM), (0x100, GREETING), (SECTOR - 2, &[0x55, 0xaa])];
    for (at, part) in parts {
        disk[at..at + part.len()].copy_from_slice(part);
    }
    disk
}
