//! The archive format that the kernel unpacks.

/// An archive in the making, as `newc`: each entry is a header of hexadecimal numbers, a name and a content.
#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    count: u32,
}

impl Archive {
    /// Adds a folder of a user, whose group has the same number.
    pub(super) fn folder(&mut self, name: &str, mode: u32, owner: usize) {
        self.add(name, 0o040_000 | mode, owner, &[]);
    }

    /// Adds a file.
    pub(super) fn file(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.add(name, 0o100_000 | mode, 0, content);
    }

    /// Adds a symbolic link.
    pub(super) fn link(&mut self, name: &str, target: &str) {
        self.add(name, 0o120_777, 0, target.as_bytes());
    }

    /// The whole archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, 0, &[]);
        self.bytes
    }

    fn add(&mut self, name: &str, mode: u32, owner: usize, content: &[u8]) {
        self.count += 1;
        // Times and devices are zero.
        let fields = [self.count as usize, mode as usize, owner, owner, 1, 0, content.len()];
        let more = [0, 0, 0, 0, name.len() + 1, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields.into_iter().chain(more) {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
