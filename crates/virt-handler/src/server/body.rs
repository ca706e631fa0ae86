//! What clients send: JSON, or YAML, as everywhere in Kubernetes.

use axum::body::{Body, to_bytes};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;

use super::answers::Refusal;

/// Far more than any of the requests needs.
const LARGEST: usize = 1 << 20;

/// Reads an object; an empty body is an empty object.
pub(super) async fn read<T: DeserializeOwned + Default>(body: Body, what: &str) -> Result<T, Refusal> {
    let bytes = to_bytes(body, LARGEST).await.map_err(|error| {
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, format!("failed to read {what}: {error}"))
    })?;
    decode(&bytes).map_err(|why| Refusal::bad(format!("failed to read {what}: {why}")))
}

fn decode<T: DeserializeOwned + Default>(bytes: &[u8]) -> Result<T, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    match text.trim_start().chars().next() {
        None => Ok(T::default()),
        Some('{') => serde_json::from_str(text).map_err(|error| error.to_string()),
        Some(_) => serde_saphyr::from_str(text).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_api::backup::{BackupCommand, BackupOptions};

    use super::*;

    #[test]
    fn json_and_yaml_and_nothing() {
        let json = r#" {"backupName": "b", "cmd": "Abort", "new": 1}"#;
        let yaml = "backupName: b\ncmd: Abort\n";
        for text in [json, yaml] {
            let options: BackupOptions = decode(text.as_bytes()).unwrap();
            assert_eq!(
                (options.backup_name.as_str(), options.cmd),
                ("b", Some(BackupCommand::Abort)),
                "{text}"
            );
        }
        assert_eq!(decode::<BackupOptions>(b" \n").unwrap(), BackupOptions::default());
        for wrong in [&b"{"[..], b"\xff", b"[1]", b"word", b"{\"backupName\": 1}"] {
            assert!(decode::<BackupOptions>(wrong).is_err(), "{wrong:?}");
        }
    }
}
