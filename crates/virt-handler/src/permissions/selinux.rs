//! SELinux labels of what virt-handler makes for a launcher, on hosts that have them.

use std::io;

use kubevirt_host::inside::Inside;

use crate::isolation::Place;
use crate::prepare::{PrepareError, failed};

const ATTRIBUTE: &str = "security.selinux";
/// What containers may use.
const TYPE: &str = "container_file_t";
/// What KubeVirt says where there is no SELinux.
const NONE: &str = "none";

/// The label of a launcher; none where the host has no SELinux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label(Option<String>);

impl Label {
    /// The label of a launcher's files.
    pub fn of(place: &Place) -> Result<Self, PrepareError> {
        if !place.folders().host_root.join("sys/fs/selinux/enforce").exists() {
            return Ok(Self(None));
        }
        let label = place.root().attribute(ATTRIBUTE);
        let label = label.map_err(|error| failed(format_args!("the launcher has no label: {error}")))?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned();
        Ok(Self(label.map(text)))
    }

    /// As the status says it.
    pub fn context(&self) -> String {
        self.0.clone().unwrap_or_else(|| NONE.to_owned())
    }

    /// Labels a file so that the launcher may use it, and only it unless the file is shared.
    pub fn put_on(&self, file: &Inside, shared: bool) -> io::Result<()> {
        let Some(label) = self.0.as_deref().and_then(|label| for_file(label, shared)) else { return Ok(()) };
        if file
            .attribute(ATTRIBUTE)?
            .is_some_and(|now| now.strip_suffix(b"\0").unwrap_or(&now) == label.as_bytes())
        {
            return Ok(());
        }
        match file.set_attribute(ATTRIBUTE, label.as_bytes()) {
            // A file system that keeps no labels has one for all its files.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
            result => result,
        }
    }
}

/// The label of a file for a process with this one: `user:role:type:level`, where the level may have colons.
fn for_file(label: &str, shared: bool) -> Option<String> {
    let level = label.splitn(4, ':').nth(3)?;
    let level = if shared { level.split(':').next()? } else { level };
    Some(format!("system_u:object_r:{TYPE}:{level}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_level_of_its_user() {
        let label = "system_u:system_r:container_t:s0:c12,c34";
        assert_eq!(for_file(label, false).unwrap(), "system_u:object_r:container_file_t:s0:c12,c34");
        assert_eq!(for_file(label, true).unwrap(), "system_u:object_r:container_file_t:s0");
        assert_eq!(for_file("nonsense", true), None);
        assert_eq!(Label(None).context(), "none");
    }
}
