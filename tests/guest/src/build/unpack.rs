//! The kernel out of the image that unpacks itself: QEMU starts it as it is, without the BIOS and without unpacking.

use anyhow::{Context, Result, ensure};

/// What LZ4 puts before blocks that are packed each for itself.
const MAGIC: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];
/// No block is larger, unpacked.
const BLOCK: usize = 8 << 20;
/// A note of four letters and eight bytes of the kind that says where a kernel starts without a BIOS (PVH).
const NOTE: [u8; 16] = *b"\x04\0\0\0\x08\0\0\0\x12\0\0\0Xen\0";
const NOTE_SEGMENT: u32 = 4;

/// The unpacked kernel. None if it is packed in another way, or cannot be started as it is.
pub(super) fn unpacked(image: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some(payload) = payload(image) else { return Ok(None) };
    let Some(blocks) = payload.strip_prefix(&MAGIC) else { return Ok(None) };
    let kernel = unpack(blocks).context("unpack the kernel")?;
    Ok(starts_as_it_is(&kernel).unwrap_or(false).then_some(kernel))
}

/// What is packed in an image: its header says where (Linux's boot protocol, from 2.08 on).
fn payload(image: &[u8]) -> Option<&[u8]> {
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let setup = (usize::from(*image.get(0x1f1)?) + 1) * 512;
    let start = setup.checked_add(number(image, 0x248)?)?;
    image.get(start..start.checked_add(number(image, 0x24c)?)?)
}

/// Unpacks blocks, each with its length before it. After the last one is the length of all, unpacked.
fn unpack(mut rest: &[u8]) -> Result<Vec<u8>> {
    let mut kernel = Vec::new();
    while rest.len() > 4 {
        let length = number(rest, 0).context("a block without a length")?;
        let block = rest.get(4..4 + length).context("a block is cut off")?;
        kernel.extend(lz4_flex::block::decompress(block, BLOCK).context("a broken block")?);
        rest = &rest[4 + length..];
    }
    let length = number(rest, 0).context("no length at the end")?;
    ensure!(length == kernel.len(), "{} bytes instead of {length}", kernel.len());
    Ok(kernel)
}

/// Whether an ELF file has the note. None if it is none.
fn starts_as_it_is(kernel: &[u8]) -> Option<bool> {
    if !kernel.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size) = (number(kernel, 32)?, short(kernel, 54)?);
    for entry in 0..short(kernel, 56)? {
        let entry = table.checked_add(entry * size)?;
        if number(kernel, entry)? == NOTE_SEGMENT as usize {
            let start = number(kernel, entry + 8)?;
            let notes = kernel.get(start..start.checked_add(number(kernel, entry + 32)?)?)?;
            return Some(notes.windows(NOTE.len()).any(|note| note == NOTE));
        }
    }
    Some(false)
}

/// A number of four bytes. Kernels are small enough that the upper half of a longer one is zero.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(usize::from(u16::from_le_bytes(bytes.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block that holds bytes as they are: fewer than fifteen.
    fn block(bytes: &[u8]) -> Vec<u8> {
        let mut block = (u32::try_from(bytes.len()).unwrap() + 1).to_le_bytes().to_vec();
        block.push(u8::try_from(bytes.len()).unwrap() << 4);
        block.extend_from_slice(bytes);
        block
    }

    /// Bytes as LZ4 packs them in a kernel.
    fn packed(bytes: &[u8]) -> Vec<u8> {
        let blocks = bytes.chunks(14).flat_map(block);
        let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        MAGIC.into_iter().chain(blocks).chain(length).collect()
    }

    /// An image with one sector of code before what is packed.
    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1024];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248] = 16;
        image[0x24c..0x250].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        image.resize(1024 + 16, 0);
        image.extend_from_slice(payload);
        image
    }

    /// An ELF file with one segment.
    fn elf(kind: u8, content: &[u8]) -> Vec<u8> {
        let mut elf = vec![0; 120];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[32], elf[54], elf[56]) = (64, 56, 1);
        (elf[64], elf[64 + 8], elf[64 + 32]) = (kind, 120, u8::try_from(content.len()).unwrap());
        elf.extend_from_slice(content);
        elf
    }

    #[test]
    fn takes_a_kernel_out_of_its_image() {
        let kernel = elf(4, &NOTE);
        assert_eq!(unpacked(&image(&packed(&kernel))).unwrap(), Some(kernel));
    }

    #[test]
    fn leaves_what_it_does_not_know() {
        let known = image(&packed(&elf(4, &NOTE)));
        let mut old = known.clone();
        old[0x202] = b'h';
        let cases = [
            ("empty", Vec::new()),
            ("no header", old),
            ("shorter than it says", known[..known.len() - 1].to_vec()),
            ("packed with xz", image(b"\xfd7zXZ\0 and more")),
            ("no ELF file", image(&packed(b"hello"))),
            ("no notes", image(&packed(&elf(1, &NOTE)))),
            ("another note", image(&packed(&elf(4, b"\x04\0\0\0\x08\0\0\0\x11\0\0\0Xen\0")))),
            ("notes out of reach", image(&packed(&elf(4, &NOTE)[..130]))),
        ];
        for (name, image) in cases {
            assert_eq!(unpacked(&image).unwrap(), None, "{name}");
        }
    }

    #[test]
    fn tells_what_is_broken() {
        let whole = packed(b"a kernel of more than one block");
        let length = whole.len();
        let cases: [(&str, Vec<u8>, &str); 5] = [
            ("cut off in a block", whole[..length - 6].to_vec(), "a block is cut off"),
            ("without the last length", whole[..length - 4].to_vec(), "no length at the end"),
            ("another length", [&whole[..length - 4], &[9, 0, 0, 0]].concat(), "31 bytes instead of 9"),
            (
                "a block that is none",
                [&MAGIC[..], &[1, 0, 0, 0, 0xff, 1, 0, 0, 0]].concat(),
                "a broken block",
            ),
            ("a length that is none", [&MAGIC[..], &[1, 2]].concat(), "no length at the end"),
        ];
        for (name, payload, expected) in cases {
            let error = format!("{:#}", unpacked(&image(&payload)).unwrap_err());
            assert!(error.contains(expected), "{name}: {error}");
        }
    }
}
