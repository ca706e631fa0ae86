//! What requests carry in their bodies.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubevirt_api::duration::Duration;
use kubevirt_api::vm::status::HotplugVolumeSource;
use kubevirt_api::vmi::disks::Disk;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::failure::Failure;

/// The only word that asks for a dry run.
const ALL: &str = "All";

/// Options that a request may be made a dry run by.
pub trait Options: DeserializeOwned + Default + JsonSchema {
    /// What the body says of a dry run.
    fn dry_run(&self) -> Option<&[String]> {
        None
    }
}

macro_rules! options {
    ($($(#[$meta:meta])* $name:ident $body:tt $($dry:ident)?;)+) => {
        $(
            $(#[$meta])*
            #[skip_serializing_none]
            #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
            #[serde(rename_all = "camelCase", default, deny_unknown_fields)]
            pub struct $name $body

            options!(@dry $name $($dry)?);
        )+
    };
    (@dry $name:ident) => { impl Options for $name {} };
    (@dry $name:ident dry_run) => {
        impl Options for $name {
            fn dry_run(&self) -> Option<&[String]> {
                self.dry_run.as_deref()
            }
        }
    };
}

options! {
    /// How to start.
    StartOptions {
        /// `StartOptions`; optional.
        pub kind: Option<String>,
        /// The version of the API; optional.
        pub api_version: Option<String>,
        /// Whether the guest waits to be unpaused.
        pub paused: bool,
        /// `All` to change nothing.
        pub dry_run: Option<Vec<String>>,
    } dry_run;

    /// How to stop.
    StopOptions {
        /// `StopOptions`; optional.
        pub kind: Option<String>,
        /// The version of the API; optional.
        pub api_version: Option<String>,
        /// How many seconds the guest has to shut down.
        pub grace_period: Option<i64>,
        /// `All` to change nothing.
        pub dry_run: Option<Vec<String>>,
    } dry_run;

    /// How to restart.
    RestartOptions {
        /// `RestartOptions`; optional.
        pub kind: Option<String>,
        /// The version of the API; optional.
        pub api_version: Option<String>,
        /// 0 to give the guest no time to shut down.
        pub grace_period_seconds: Option<i64>,
        /// `All` to change nothing.
        pub dry_run: Option<Vec<String>>,
    } dry_run;

    /// Where to move.
    MigrateOptions {
        /// `MigrateOptions`; optional.
        pub kind: Option<String>,
        /// The version of the API; optional.
        pub api_version: Option<String>,
        /// Labels that the new node must have beside those that the machine asks for.
        pub added_node_selector: Option<BTreeMap<String, String>>,
        /// `All` to change nothing.
        pub dry_run: Option<Vec<String>>,
    } dry_run;

    /// How to pause or to go on.
    PauseOptions {
        /// `PauseOptions` or `UnpauseOptions`; optional.
        pub kind: Option<String>,
        /// The version of the API; optional.
        pub api_version: Option<String>,
        /// `All` to change nothing.
        pub dry_run: Option<Vec<String>>,
    } dry_run;

    /// Which evacuation is called off.
    EvacuateCancelOptions {
        /// `EvacuateCancelOptions`; optional.
        pub kind: Option<String>,
        /// The version of the API; optional.
        pub api_version: Option<String>,
        /// The node that the instance was to leave.
        pub evacuation_node_name: String,
        /// `All` to change nothing.
        pub dry_run: Option<Vec<String>>,
    } dry_run;

    /// For how long to freeze.
    FreezeOptions {
        /// After this time the guest's file systems go on by themselves; 0 for never.
        pub unfreeze_timeout: Option<Duration>,
    };

    /// The volume to plug; as in the API, but a part that is missing is told by its name.
    AddVolume {
        /// The name of the volume and its disk.
        pub name: String,
        /// How the guest sees it; the name in it is set to that of the volume.
        #[schemars(with = "Option<Disk>")]
        pub disk: Option<Value>,
        /// The claim or DataVolume.
        pub volume_source: Option<HotplugVolumeSource>,
        /// `All` to change nothing.
        pub dry_run: Option<Vec<String>>,
    } dry_run;

    /// The volume to unplug.
    RemoveVolume {
        /// Its name.
        pub name: String,
        /// `All` to change nothing.
        pub dry_run: Option<Vec<String>>,
    } dry_run;

    /// Where to dump the memory.
    MemoryDump {
        /// The claim.
        pub claim_name: String,
        /// Not for users to set.
        pub phase: Option<String>,
        /// Not for users to set.
        pub remove: Option<bool>,
        /// Not for users to set.
        pub start_timestamp: Option<String>,
        /// Not for users to set.
        pub end_timestamp: Option<String>,
        /// Not for users to set.
        pub file_name: Option<String>,
        /// Not for users to set.
        pub message: Option<String>,
    };

    /// What of a graph is wanted.
    ObjectGraphOptions {
        /// Whether also what a machine can do without; it is if unset.
        pub include_optional_nodes: Option<bool>,
        /// Labels that nodes must have.
        pub label_selector: Option<LabelSelector>,
    };

    /// The guest owner's side of a session.
    SevSession {
        /// `SEVSessionOptions`; optional.
        pub kind: Option<String>,
        /// The version of the API; optional.
        pub api_version: Option<String>,
        /// The session, base64.
        pub session: Option<String>,
        /// The owner's Diffie-Hellman key, base64.
        pub dh_cert: Option<String>,
    };

    /// A request without options.
    Nothing {};
}

/// What a body says, in JSON or YAML. An empty body says nothing.
pub fn decode<T: Options>(body: &[u8]) -> Result<T, Failure> {
    let wrong = |error: String| {
        Failure::bad_request(format!("Can not unmarshal Request body to struct, error: {error}"))
    };
    let text = body.trim_ascii();
    if text.is_empty() || text == b"null" {
        return Ok(T::default());
    }
    let options: T = if text.starts_with(b"{") {
        serde_json::from_slice(text).map_err(|error| wrong(error.to_string()))?
    } else {
        let text = std::str::from_utf8(text).map_err(|error| wrong(error.to_string()))?;
        serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?
    };
    Ok(options)
}

/// Whether a request is a dry run, by its body or its query. Any other word than `All` is refused.
pub fn is_dry_run<T: Options>(options: &T, query: &[(String, String)]) -> Result<bool, Failure> {
    let asked = query.iter().filter(|(name, _)| name == "dryRun").map(|(_, value)| value);
    let words: Vec<&String> = options.dry_run().unwrap_or_default().iter().chain(asked).collect();
    match words.iter().find(|word| **word != ALL) {
        Some(word) => {
            Err(Failure::bad_request(format!("dryRun: {word:?} is not supported: only {ALL:?} is")))
        }
        None => Ok(!words.is_empty()),
    }
}

/// The schema of options, for OpenAPI.
pub fn schema<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::openapi3().with(|it| {
        it.inline_subschemas = true;
        it.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    plain(&mut schema);
    schema
}

/// Leaves only what OpenAPI 2 and 3 both know.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for unknown in ["title", "nullable", "$schema", "components", "const"] {
                // These may be names of properties, too, which have schemas and not words.
                if !fields.get(unknown).is_some_and(Value::is_object) || unknown == "components" {
                    fields.remove(unknown);
                }
            }
            for choice in ["anyOf", "oneOf"] {
                if fields.get(choice).is_some_and(Value::is_array) {
                    fields.remove(choice);
                }
            }
            fields.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json_or_yaml_or_nothing() {
        let paused = StartOptions { paused: true, ..StartOptions::default() };
        for (body, expected) in [
            ("", StartOptions::default()),
            (" \n", StartOptions::default()),
            ("null", StartOptions::default()),
            ("{}", StartOptions::default()),
            (r#"{"paused":true}"#, paused.clone()),
            ("paused: true\n", paused),
        ] {
            assert_eq!(decode::<StartOptions>(body.as_bytes()).unwrap(), expected, "{body}");
        }
    }

    #[test]
    fn a_wrong_body_is_told_by_its_field() {
        for (body, field) in
            [(r#"{"pausd":true}"#, "pausd"), ("pausd: true", "pausd"), ("{", "EOF"), ("[]", "")]
        {
            let failure = decode::<StartOptions>(body.as_bytes()).unwrap_err();
            assert_eq!(failure.code, 400);
            assert!(failure.message.contains(field), "{body}: {}", failure.message);
        }
    }

    #[test]
    fn only_one_word_asks_for_a_dry_run() {
        let options = |words: &[&str]| StartOptions {
            dry_run: Some(words.iter().map(|word| (*word).to_owned()).collect()),
            ..StartOptions::default()
        };
        let query = |word: &str| vec![("dryRun".to_owned(), word.to_owned())];
        assert_eq!(is_dry_run(&StartOptions::default(), &[]), Ok(false));
        assert_eq!(is_dry_run(&options(&[]), &[]), Ok(false));
        assert_eq!(is_dry_run(&options(&["All"]), &[]), Ok(true));
        assert_eq!(is_dry_run(&Nothing::default(), &query("All")), Ok(true));
        assert!(is_dry_run(&options(&["all"]), &[]).is_err());
        assert!(is_dry_run(&options(&["All"]), &query("Some")).is_err());
    }

    #[test]
    fn schemas_are_plain() {
        for schema in [schema::<StartOptions>(), schema::<AddVolume>(), schema::<ObjectGraphOptions>()] {
            let text = schema.to_string();
            assert_eq!(schema["type"], "object");
            assert!(!text.contains("$ref") && !text.contains("anyOf"), "{text}");
        }
    }
}
