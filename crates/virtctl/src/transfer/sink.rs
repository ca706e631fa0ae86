//! Where a download goes: a file or standard output, unpacked if that is wanted.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Stdout, Write};

use flate2::write::MultiGzDecoder;

use super::checksum::Checksum;

/// A file that can be started over, or a stream that cannot.
enum Target {
    File(File),
    Stdout(Stdout),
    /// What a decoder still has when it is given up.
    Nowhere,
}

/// The target with a checksum of what is written to it.
struct Written {
    target: Target,
    checksum: Checksum,
    bytes: u64,
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.target {
            Target::File(file) => file.write(bytes)?,
            Target::Stdout(stdout) => stdout.write(bytes)?,
            Target::Nowhere => bytes.len(),
        };
        self.checksum.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::File(file) => file.flush(),
            Target::Stdout(stdout) => stdout.flush(),
            Target::Nowhere => Ok(()),
        }
    }
}

enum Writer {
    Plain(Written),
    Unpacking(MultiGzDecoder<Written>),
}

/// What was written in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Result {
    /// How much.
    pub bytes: u64,
    /// Its SHA-256.
    pub checksum: String,
}

/// The receiving end of a download.
pub struct Sink {
    // Gone only while it is replaced.
    writer: Option<Writer>,
    unpack: bool,
}

impl Sink {
    /// A file, which is emptied.
    pub fn file(file: File, unpack: bool) -> Self {
        Self::new(Target::File(file), unpack)
    }

    /// Standard output.
    pub fn stdout(unpack: bool) -> Self {
        Self::new(Target::Stdout(io::stdout()), unpack)
    }

    fn new(target: Target, unpack: bool) -> Self {
        Self { writer: Some(writer(target, unpack)), unpack }
    }

    /// Whether what was written can be taken back.
    pub fn can_restart(&self) -> bool {
        let target = match &self.writer {
            Some(Writer::Plain(written)) => &written.target,
            Some(Writer::Unpacking(decoder)) => &decoder.get_ref().target,
            None => return false,
        };
        matches!(target, Target::File(_))
    }

    /// Takes back what was written.
    pub fn restart(&mut self) -> io::Result<()> {
        let target = match self.writer.take() {
            Some(Writer::Plain(written)) => written.target,
            // The bytes that are missing for an end are why it starts over.
            Some(Writer::Unpacking(mut decoder)) => {
                std::mem::replace(&mut decoder.get_mut().target, Target::Nowhere)
            }
            None => return Err(io::Error::other("the output is closed")),
        };
        let mut target = target;
        if let Target::File(file) = &mut target {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
        }
        self.writer = Some(writer(target, self.unpack));
        Ok(())
    }

    /// Writes what was received.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.writer {
            Some(Writer::Plain(written)) => written.write_all(bytes),
            Some(Writer::Unpacking(decoder)) => decoder.write_all(bytes),
            None => Err(io::Error::other("the output is closed")),
        }
    }

    /// Writes what is left and makes sure that it is on the disk.
    pub fn finish(mut self) -> io::Result<Result> {
        let mut written = match self.writer.take() {
            Some(Writer::Plain(written)) => written,
            Some(Writer::Unpacking(decoder)) => decoder.finish()?,
            None => return Err(io::Error::other("the output is closed")),
        };
        written.flush()?;
        if let Target::File(file) = &written.target {
            match file.sync_all() {
                // A pipe or a device has nothing to bring to a disk.
                Err(error) if error.kind() != io::ErrorKind::InvalidInput => return Err(error),
                _ => {}
            }
        }
        Ok(Result { bytes: written.bytes, checksum: written.checksum.hex() })
    }
}

fn writer(target: Target, unpack: bool) -> Writer {
    let written = Written { target, checksum: Checksum::default(), bytes: 0 };
    if unpack { Writer::Unpacking(MultiGzDecoder::new(written)) } else { Writer::Plain(written) }
}
