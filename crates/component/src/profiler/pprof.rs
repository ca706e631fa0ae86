//! A profile as `pprof` reads it: the protocol buffer of `profile.proto`, packed by gzip.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::programs::Programs;

/// How often each stack was seen: addresses of code, the innermost first.
pub(super) type Counts = HashMap<Box<[u64]>, u64>;

/// What is known of a profile.
pub(super) struct Profile<'a> {
    pub(super) counts: &'a Counts,
    pub(super) programs: &'a Programs,
    /// When it began, since 1970.
    pub(super) began: Duration,
    /// How long it took.
    pub(super) lasted: Duration,
    /// How much CPU time is between two looks.
    pub(super) period: Duration,
    /// Said to who reads it.
    pub(super) comment: Option<String>,
}

impl Profile<'_> {
    /// The whole file.
    pub(super) fn pack(&self) -> io::Result<Vec<u8>> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(&self.message())?;
        packer.finish()
    }

    /// The message `Profile`.
    fn message(&self) -> Vec<u8> {
        let mut strings = Strings::default();
        let mut message = Message::default();
        let (count, time) =
            ([strings.of("samples"), strings.of("count")], [strings.of("cpu"), strings.of("nanoseconds")]);
        message.inner(1, value_type(count));
        message.inner(1, value_type(time));
        let locations = self.samples(&mut message);
        self.mappings(&mut message, &mut strings);
        self.locations(&mut message, &locations);
        let comment = self.comment.as_deref().map(|comment| strings.of(comment));
        for text in &strings.all {
            message.bytes(6, text.as_bytes());
        }
        message.number(9, nanoseconds(self.began));
        message.number(10, nanoseconds(self.lasted));
        message.inner(11, value_type(time));
        message.number(12, nanoseconds(self.period));
        message.number(13, comment.unwrap_or_default());
        message.0
    }

    /// Every stack. Gives the number of each address.
    fn samples(&self, message: &mut Message) -> BTreeMap<u64, u64> {
        let addresses = self.counts.keys().flat_map(|stack| stack.iter().copied());
        let mut numbers: BTreeMap<u64, u64> = addresses.map(|address| (address, 0)).collect();
        for (index, number) in numbers.values_mut().enumerate() {
            *number = index as u64 + 1;
        }
        for (stack, count) in self.counts {
            let mut sample = Message::default();
            let stack: Vec<u64> = stack.iter().map(|address| numbers[address]).collect();
            sample.packed(1, &stack);
            sample.packed(2, &[*count, count.saturating_mul(nanoseconds(self.period))]);
            message.inner(2, sample);
        }
        numbers
    }

    /// Where the programs are. Names of functions are left to who has a program that was not stripped.
    fn mappings(&self, message: &mut Message, strings: &mut Strings) {
        for (index, program) in self.programs.0.iter().enumerate() {
            let mut mapping = Message::default();
            mapping.number(1, index as u64 + 1);
            mapping.number(2, program.mapping.start);
            mapping.number(3, program.mapping.end);
            mapping.number(4, program.mapping.offset);
            mapping.number(5, strings.of(&program.mapping.file));
            mapping.number(6, strings.of(&program.build_id));
            message.inner(3, mapping);
        }
    }

    fn locations(&self, message: &mut Message, numbers: &BTreeMap<u64, u64>) {
        for (address, number) in numbers {
            let mapping = self.programs.position(*address).map_or(0, |index| index as u64 + 1);
            let mut location = Message::default();
            location.number(1, *number);
            location.number(2, mapping);
            location.number(3, *address);
            message.inner(4, location);
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What is counted, and in what.
fn value_type([what, unit]: [u64; 2]) -> Message {
    let mut message = Message::default();
    message.number(1, what);
    message.number(2, unit);
    message
}

/// Texts, which are said once and then numbered.
struct Strings {
    all: Vec<String>,
}

impl Default for Strings {
    /// The first must be empty.
    fn default() -> Self {
        Self { all: vec![String::new()] }
    }
}

impl Strings {
    fn of(&mut self, text: &str) -> u64 {
        let known = self.all.iter().position(|known| known == text);
        known.unwrap_or_else(|| {
            self.all.push(text.to_owned());
            self.all.len() - 1
        }) as u64
    }
}

/// A protocol buffer in the making.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A number; zero is what is read where there is none.
    fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn inner(&mut self, field: u64, message: Self) {
        self.bytes(field, &message.0);
    }

    fn packed(&mut self, field: u64, values: &[u64]) {
        let mut packed = Self::default();
        values.iter().for_each(|value| packed.varint(*value));
        self.inner(field, packed);
    }
}
