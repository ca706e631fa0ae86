//! Formats that are known only to be refused, by their first bytes.

/// Bytes, where they are, and the format that they tell.
const MARKS: &[(usize, &[u8], &str)] = &[
    (0, b"KDMV", "VMDK"),
    (0, b"COWD", "VMDK"),
    (0, b"# Disk DescriptorFile", "VMDK"),
    (64, &0xbeda_107f_u32.to_le_bytes(), "VDI"),
    (0, b"vhdxfile", "VHDX"),
    (0, b"conectix", "VHD"),
    (0, b"QED\0", "QED"),
    (0, b"WithoutFreeSpace", "Parallels"),
    (0, b"WithouFreSpacExt", "Parallels"),
    (0, b"LUKS\xba\xbe", "LUKS"),
    (0, b"Bochs Virtual HD Image", "Bochs"),
    (0, b"#!/bin/sh\n#V2.0 Format\n", "cloop"),
    (0, b"QFI\xfb\0\0\0\x01", "qcow (version 1)"),
];

/// The format of an image that starts with these bytes, if it is one to refuse.
pub fn format(start: &[u8]) -> Option<&'static str> {
    MARKS
        .iter()
        .find(|(at, mark, _)| start.get(*at..*at + mark.len()) == Some(mark))
        .map(|(_, _, name)| *name)
}
