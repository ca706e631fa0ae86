//! Names of devices and block nodes, which whoever talks to the monitor needs too.

/// Longest name of a block node.
const MAX_NODE: usize = 31;

/// Device of a disk.
pub fn disk(name: &str) -> String {
    format!("disk-{name}")
}

/// The name that users of KubeVirt know a device by, in metrics and in the guest.
pub fn alias(name: &str) -> String {
    format!("ua-{name}")
}

/// Device of a network card.
pub fn interface(name: &str) -> String {
    format!("net-{name}")
}

/// Host side of a network card.
pub fn netdev(name: &str) -> String {
    format!("host-{name}")
}

/// An open queue of a network card's tap device.
pub fn tap_queue(name: &str, index: usize) -> String {
    format!("tap-{name}-{index}")
}

/// Stream to the user-space switch of a network card.
pub fn card_stream(name: &str) -> String {
    format!("char-{name}")
}

/// A virtual CPU that is plugged in later, by its number.
pub fn cpu(number: u32) -> String {
    format!("cpu-{number}")
}

/// The device whose memory can grow.
pub const MEMORY: &str = "virtiomem0";

/// Device of a shared directory.
pub fn filesystem(name: &str) -> String {
    format!("fs-{name}")
}

/// IO thread by its number from 1.
pub fn io_thread(number: u32) -> String {
    format!("iothread{number}")
}

/// Block node that a disk shows.
pub fn node(disk: &str) -> String {
    bounded("v-", disk, "")
}

/// Block node of the file or device under a disk's node.
pub fn storage_node(disk: &str) -> String {
    bounded("v-", disk, "-file")
}

/// Block node of the image under a disk's overlay, `depth` layers down from 1.
pub fn backing_node(disk: &str, depth: usize) -> String {
    bounded("v-", disk, &format!("-base{depth}"))
}

/// Block node of the file under [`backing_node`].
pub fn backing_storage_node(disk: &str, depth: usize) -> String {
    bounded("v-", disk, &format!("-bfile{depth}"))
}

/// Block node of the bytes whose changes a disk's node tracks.
pub fn data_node(disk: &str) -> String {
    bounded("v-", disk, "-data")
}

/// Block node of the file under [`data_node`].
pub fn data_storage_node(disk: &str) -> String {
    bounded("v-", disk, "-dfile")
}

/// Names that are too long keep their start and get a hash, so that they stay distinct.
fn bounded(prefix: &str, name: &str, suffix: &str) -> String {
    let full = format!("{prefix}{name}{suffix}");
    if full.len() <= MAX_NODE {
        return full;
    }
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let room = MAX_NODE.saturating_sub(prefix.len() + suffix.len() + 9);
    let start: String = name.chars().filter(char::is_ascii).take(room).collect();
    format!("{prefix}{start}-{hash:08x}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_stay_distinct_and_short_enough() {
        let (a, b) = ("a".repeat(62) + "x", "a".repeat(62) + "y");
        for name in [node(&a), storage_node(&a), backing_storage_node(&a, 10)] {
            assert!(name.len() <= MAX_NODE, "{name}");
        }
        assert_ne!(node(&a), node(&b));
        assert_eq!(node("root"), "v-root");
    }
}
