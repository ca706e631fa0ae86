//! The path of a field, built on the stack and written out only when there is something to say of it.

use std::fmt;

/// Where a field stands, such as `spec.domain.devices.disks[1].disk.bus`.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl Path<'static> {
    /// The object itself, for what is about no field of it.
    pub const WHOLE: Self = Path::new("");
}

impl<'a> Path<'a> {
    /// A path that starts with this field, or with several joined by dots; empty for the object itself.
    pub const fn new(field: &'a str) -> Self {
        Self { parent: None, step: Step::Field(field) }
    }

    /// A field below this one, or several joined by dots: `devices.at("rng.source")`.
    pub const fn at(&'a self, field: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Field(field) }
    }

    /// An item of this list.
    pub const fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// A value of this map.
    pub const fn key(&'a self, key: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Key(key) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        let at_root = self.parent.is_none_or(Path::is_root);
        match self.step {
            Step::Field("") => Ok(()),
            Step::Field(field) if at_root => f.write_str(field),
            Step::Field(field) => write!(f, ".{field}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

impl Path<'_> {
    fn is_root(&self) -> bool {
        self.parent.is_none() && matches!(self.step, Step::Field(""))
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn a_path_reads_as_in_a_manifest() {
        let root = Path::new("");
        let spec = root.at("spec");
        let disks = spec.at("domain.devices.disks");
        let disk = disks.index(1);
        assert_eq!(disk.at("disk.bus").to_string(), "spec.domain.devices.disks[1].disk.bus");
        assert_eq!(spec.at("nodeSelector").key("a/b").to_string(), "spec.nodeSelector[a/b]");
        assert_eq!(Path::new("spec").at("x").to_string(), "spec.x");
    }
}
