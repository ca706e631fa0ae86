//! The image with the tools, as the cluster tells it.

use serde::Deserialize;

const NAME: &str = "libguestfs-tools";

/// What the cluster tells of the image.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Info {
    registry: String,
    tag: String,
    digest: String,
    image_prefix: String,
    gs_image: String,
}

/// The cluster does not say which version.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("Neither the digest nor the tag for the image has been specified")]
pub struct NoVersion;

/// The whole name of the image.
pub fn name(info: &Info) -> Result<String, NoVersion> {
    if !info.gs_image.is_empty() {
        return Ok(info.gs_image.clone());
    }
    let image = format!("{}{NAME}", info.image_prefix);
    let image = match (info.digest.as_str(), info.tag.as_str()) {
        ("", "") => return Err(NoVersion),
        ("", tag) => format!("{image}:{tag}"),
        (digest, _) => format!("{image}@{digest}"),
    };
    Ok(if info.registry.is_empty() { image } else { format!("{}/{image}", info.registry) })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn names_are_put_together() {
        let of = |info: Value| name(&serde_json::from_value(info).unwrap());
        assert_eq!(of(json!({ "gsImage": "a/b:c", "tag": "d" })).unwrap(), "a/b:c");
        assert_eq!(of(json!({ "registry": "r", "tag": "t" })).unwrap(), "r/libguestfs-tools:t");
        let all = json!({ "registry": "r", "tag": "t", "digest": "sha256:x", "imagePrefix": "p-" });
        assert_eq!(of(all).unwrap(), "r/p-libguestfs-tools@sha256:x");
        assert_eq!(of(json!({ "tag": "t" })).unwrap(), "libguestfs-tools:t");
        assert_eq!(of(json!({ "registry": "r" })), Err(NoVersion));
    }
}
