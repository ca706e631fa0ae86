//! Where something is inside a JSON document.

use std::fmt;

use serde_json::Value;

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// A field of an object, or a key of a map.
    Field(String),
    /// An item of a list, counted from zero.
    Index(usize),
    /// Every item of a list or every value of a map; only in paths that point into a schema.
    Each,
}

/// The way from the root of a document to one of its values.
///
/// Displayed as `spec.domain.devices.disks[1].disk.bus`; a key that is not a plain word is put in
/// brackets, as in `metadata.annotations[a.b/c]`. The root itself is displayed as nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    segments: Vec<Segment>,
}

impl Path {
    /// The steps from the root.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether this is the root of the document.
    pub fn is_root(&self) -> bool {
        self.segments.is_empty()
    }

    /// The value at this path in a document, if there is one.
    pub fn find<'v>(&self, document: &'v Value) -> Option<&'v Value> {
        self.segments.iter().try_fold(document, |value, segment| match segment {
            Segment::Field(name) => value.get(name),
            Segment::Index(index) => value.get(index),
            Segment::Each => None,
        })
    }
}

impl FromIterator<Segment> for Path {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self { segments: segments.into_iter().collect() }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Field(name) if !is_plain(name) => write!(f, "[{name}]")?,
                Segment::Field(name) if i == 0 => f.write_str(name)?,
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Each => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'$'))
}

/// A path under construction: a chain of stack frames, so that walking a document costs nothing
/// until there is something to report.
pub(crate) struct Trail<'a> {
    parent: Option<&'a Trail<'a>>,
    step: Step<'a>,
    /// The place among the siblings in the document; none for what is missing there.
    position: Option<usize>,
}

enum Step<'a> {
    Root,
    Field(&'a str),
    Index(usize),
    Each,
}

impl<'a> Trail<'a> {
    pub(crate) const ROOT: Trail<'static> = Trail { parent: None, step: Step::Root, position: None };

    pub(crate) fn field(&'a self, name: &'a str, position: usize) -> Trail<'a> {
        self.step(Step::Field(name), Some(position))
    }

    /// A field that the document does not have; it is ordered together with its parent.
    pub(crate) fn missing(&'a self, name: &'a str) -> Trail<'a> {
        self.step(Step::Field(name), None)
    }

    pub(crate) fn index(&'a self, index: usize) -> Trail<'a> {
        self.step(Step::Index(index), Some(index))
    }

    pub(crate) fn each(&'a self) -> Trail<'a> {
        self.step(Step::Each, None)
    }

    fn step(&'a self, step: Step<'a>, position: Option<usize>) -> Trail<'a> {
        Trail { parent: Some(self), step, position }
    }

    fn up(&self) -> impl Iterator<Item = &Trail<'a>> {
        std::iter::successors(Some(self), |trail| trail.parent)
    }

    /// How many steps below the root this is.
    pub(crate) fn depth(&self) -> usize {
        self.up().count() - 1
    }

    /// What to sort by to get document order.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order: Vec<_> = self.up().filter_map(|trail| trail.position).collect();
        order.reverse();
        order
    }

    pub(crate) fn path(&self) -> Path {
        let mut segments: Vec<_> = self
            .up()
            .filter_map(|trail| match trail.step {
                Step::Root => None,
                Step::Field(name) => Some(Segment::Field(name.to_owned())),
                Step::Index(index) => Some(Segment::Index(index)),
                Step::Each => Some(Segment::Each),
            })
            .collect();
        segments.reverse();
        Path { segments }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn displays_words_with_dots_and_the_rest_in_brackets() {
        let root = Trail::ROOT;
        let spec = root.field("spec", 0);
        let disks = spec.field("disks", 3);
        let disk = disks.index(1);
        let bus = disk.missing("bus");
        assert_eq!(bus.path().to_string(), "spec.disks[1].bus");
        assert_eq!(bus.order(), [0, 3, 1]);
        assert_eq!(bus.depth(), 4);
        assert_eq!(disks.each().path().to_string(), "spec.disks[*]");

        let annotations = root.field("annotations", 0);
        for (key, shown) in [
            ("a.b/c", "annotations[a.b/c]"),
            ("", "annotations[]"),
            ("plain-word_1", "annotations.plain-word_1"),
            ("two words", "annotations[two words]"),
        ] {
            assert_eq!(annotations.missing(key).path().to_string(), shown);
        }
        assert_eq!(root.path().to_string(), "");
        assert_eq!(root.missing("a.b").path().to_string(), "[a.b]");
    }

    #[test]
    fn finds_its_value() {
        let document = json!({"a": [{"b": 1}]});
        let root = Trail::ROOT;
        let a = root.field("a", 0);
        let item = a.index(0);
        assert_eq!(item.missing("b").path().find(&document), Some(&json!(1)));
        assert_eq!(item.missing("c").path().find(&document), None);
        assert_eq!(a.each().path().find(&document), None);
        assert_eq!(root.path().find(&document), Some(&document));
    }
}
