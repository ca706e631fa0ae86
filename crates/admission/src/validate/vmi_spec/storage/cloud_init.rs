//! Data for cloud-init: one source of each kind, and not too much of it.

use k8s_openapi::api::core::v1::LocalObjectReference;
use kubevirt_api::vmi::volumes::Volume;

use crate::{Path, Problems};

/// The most data that may stand in the object itself, in bytes: each change of it goes to many places.
const MOST_BYTES: usize = 2048;

/// One kind of data, in the three ways that it can be given.
struct Data<'a> {
    /// The kind in words, and the field that names a secret with it.
    kind: &'static str,
    by_secret: &'static str,
    base64_field: &'static str,
    secret: Option<&'a LocalObjectReference>,
    base64: Option<&'a str>,
    text: Option<&'a str>,
}

/// What is wrong with the cloud-init data of the volume at `path`.
pub(super) fn check(path: &Path<'_>, volume: &Volume, problems: &mut Problems) {
    // Of two sources the first is looked at; that there are two is a problem of the volume.
    macro_rules! data_of {
        ($source:expr) => {
            [
                Data {
                    kind: "user data",
                    by_secret: "secretRef",
                    base64_field: "userDataBase64",
                    secret: $source.secret_ref.as_ref(),
                    base64: $source.user_data_base64.as_deref(),
                    text: $source.user_data.as_deref(),
                },
                Data {
                    kind: "network data",
                    by_secret: "networkDataSecretRef",
                    base64_field: "networkDataBase64",
                    secret: $source.network_data_secret_ref.as_ref(),
                    base64: $source.network_data_base64.as_deref(),
                    text: $source.network_data.as_deref(),
                },
            ]
        };
    }
    let (field, data) = match (&volume.cloud_init_no_cloud, &volume.cloud_init_config_drive) {
        (Some(source), _) => ("cloudInitNoCloud", data_of!(source)),
        (None, Some(source)) => ("cloudInitConfigDrive", data_of!(source)),
        (None, None) => return,
    };
    let at = path.at(field);
    let mut sources = 0;
    for data in &data {
        sources += data.check(&at, problems);
    }
    if sources == 0 {
        problems.invalid(&at, "there is no data for cloud-init: give user data, network data or both");
    }
}

impl Data<'_> {
    /// Checks the data, and returns from how many sources it comes.
    fn check(&self, at: &Path<'_>, problems: &mut Problems) -> usize {
        let secret = self.secret.is_some_and(|secret| !secret.name.is_empty());
        let base64 = self.base64.filter(|text| !text.is_empty());
        let text = self.text.filter(|text| !text.is_empty());
        let sources = usize::from(secret) + usize::from(base64.is_some()) + usize::from(text.is_some());
        if sources > 1 {
            problems.invalid(at, format!("the {} comes from {sources} sources: keep one", self.kind));
        }
        let decoded = base64.map(decoded_length);
        if decoded == Some(None) {
            problems.invalid(&at.at(self.base64_field), "this is not valid base64");
        }
        let length = text.map(str::len).or_else(|| decoded.flatten()).unwrap_or_default();
        if length > MOST_BYTES {
            let (kind, secret) = (self.kind, self.by_secret);
            let message =
                format!("{length} bytes of {kind} are more than {MOST_BYTES}: use a secret, {secret}");
            problems.invalid(at, message);
        }
        sources
    }
}

/// How many bytes a text in base64 stands for, or none if it is no such text. Line breaks do not count.
fn decoded_length(text: &str) -> Option<usize> {
    let (mut digits, mut padding) = (0_usize, 0_usize);
    for byte in text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')) {
        match byte {
            b'=' => padding += 1,
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' if padding == 0 => digits += 1,
            _ => return None,
        }
    }
    let whole = padding <= 2 && (digits + padding).is_multiple_of(4) && digits >= padding;
    whole.then_some(digits * 3 / 4)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::try_all;
    use super::decoded_length;
    use crate::testing::World;

    #[test]
    fn base64_is_measured() {
        let cases = [
            ("", Some(0)),
            ("YQ==", Some(1)),
            ("YWI=", Some(2)),
            ("YWJj", Some(3)),
            ("YW\r\nJj\n", Some(3)),
            ("YWJjZA==", Some(4)),
            ("+/+/", Some(3)),
            ("YQ", None),
            ("YQ=", None),
            ("Y===", None),
            ("====", None),
            ("=", None),
            ("Y=Q=", None),
            ("YQ==YQ==", None),
            ("Y Q=", None),
            ("YW-_", None),
            ("größe", None),
        ];
        for (text, expected) in cases {
            assert_eq!(decoded_length(text), expected, "{text:?}");
        }
    }

    #[test]
    fn cloud_init_has_one_source_of_each_kind() {
        for (field, at, base64, network_base64) in [
            (
                "cloudInitNoCloud",
                "spec.volumes[0].cloudInitNoCloud",
                "spec.volumes[0].cloudInitNoCloud.userDataBase64",
                "spec.volumes[0].cloudInitNoCloud.networkDataBase64",
            ),
            (
                "cloudInitConfigDrive",
                "spec.volumes[0].cloudInitConfigDrive",
                "spec.volumes[0].cloudInitConfigDrive.userDataBase64",
                "spec.volumes[0].cloudInitConfigDrive.networkDataBase64",
            ),
        ] {
            let cases = [
                ("nothing", json!({}), vec![at]),
                (
                    "empty texts",
                    json!({"userData": "", "networkData": "", "secretRef": {"name": ""}}),
                    vec![at],
                ),
                ("user data", json!({"userData": "#cloud-config"}), vec![]),
                ("user data in base64", json!({"userDataBase64": "YWJj"}), vec![]),
                ("user data in a secret", json!({"secretRef": {"name": "s"}}), vec![]),
                ("network data", json!({"networkData": "version: 2"}), vec![]),
                ("network data in base64", json!({"networkDataBase64": "YWJj"}), vec![]),
                ("network data in a secret", json!({"networkDataSecretRef": {"name": "s"}}), vec![]),
                ("both", json!({"userData": "x", "networkData": "y"}), vec![]),
                ("user data twice", json!({"userData": "x", "userDataBase64": "YQ=="}), vec![at]),
                ("user data from two places", json!({"userData": "x", "secretRef": {"name": "s"}}), vec![at]),
                (
                    "network data from three places",
                    json!({"networkData": "x", "networkDataBase64": "YQ==", "networkDataSecretRef": {"name": "s"}}),
                    vec![at],
                ),
                ("malformed base64", json!({"userDataBase64": "??"}), vec![base64]),
                ("malformed base64 of the network", json!({"networkDataBase64": "a"}), vec![network_base64]),
                ("as much as can be", json!({"userData": "x".repeat(2048)}), vec![]),
                ("too much", json!({"userData": "x".repeat(2049)}), vec![at]),
                (
                    "as much as can be in base64",
                    json!({"userDataBase64": format!("{}YWI=", "YWJj".repeat(682))}),
                    vec![],
                ),
                ("too much in base64", json!({"userDataBase64": "YWJj".repeat(683)}), vec![at]),
                ("too much of the network", json!({"networkData": "x".repeat(2049)}), vec![at]),
                (
                    "too much of both",
                    json!({"userData": "x".repeat(3000), "networkData": "x".repeat(3000)}),
                    vec![at, at],
                ),
            ];
            for (case, source, expected) in cases {
                let volumes = json!([{"name": "c", (field): source}]);
                let expected: &'static [&'static str] = Vec::leak(expected);
                try_all(&World::default(), vec![(case, json!([]), volumes, expected)]);
            }
        }
    }
}
