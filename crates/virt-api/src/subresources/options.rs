//! What requests carry in their bodies.

use std::collections::BTreeMap;

use axum::body::Bytes;
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

/// All of them may say what they are, as any object of Kubernetes may.
macro_rules! options {
    ($($(#[$meta:meta])* $name:ident { $($fields:tt)* } $($dry:ident)?;)+) => {
        $(
            $(#[$meta])*
            #[skip_serializing_none]
            #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
            #[serde(rename_all = "camelCase", default, deny_unknown_fields)]
            pub struct $name {
                /// What they are; optional.
                pub kind: Option<String>,
                /// The version of the API; optional.
                pub api_version: Option<String>,
                $($fields)*
            }

            options!(@dry $name $($dry)?);
        )+

        #[cfg(test)]
        fn check_all() {
            $(tests::takes::<$name>();)+
        }
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
        /// Whether the guest waits to be unpaused.
        pub paused: bool,
        /// `All` to change nothing.
        pub dry_run: Option<Vec<String>>,
    } dry_run;

    /// How to stop.
    StopOptions {
        /// How many seconds the guest has to shut down.
        pub grace_period: Option<i64>,
        /// `All` to change nothing.
        pub dry_run: Option<Vec<String>>,
    } dry_run;

    /// How to restart.
    RestartOptions {
        /// 0 to give the guest no time to shut down.
        pub grace_period_seconds: Option<i64>,
        /// `All` to change nothing.
        pub dry_run: Option<Vec<String>>,
    } dry_run;

    /// Where to move.
    MigrateOptions {
        /// Labels that the new node must have beside those that the machine asks for.
        pub added_node_selector: Option<BTreeMap<String, String>>,
        /// `All` to change nothing.
        pub dry_run: Option<Vec<String>>,
    } dry_run;

    /// How to pause or to go on.
    PauseOptions {
        /// `All` to change nothing.
        pub dry_run: Option<Vec<String>>,
    } dry_run;

    /// Which evacuation is called off.
    EvacuateCancelOptions {
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
    match given(body)? {
        Value::Null => Ok(T::default()),
        object => serde_json::from_value(object).map_err(wrong),
    }
}

/// The object in a body, which must be of this type, as JSON.
pub fn checked<T: DeserializeOwned>(body: &[u8]) -> Result<Bytes, Failure> {
    let object = given(body)?;
    T::deserialize(&object).map_err(wrong)?;
    Ok(object.to_string().into())
}

/// The object in a body, without fields that are null: those mean the same as if they were not there.
fn given(body: &[u8]) -> Result<Value, Failure> {
    let text = body.trim_ascii();
    let mut object: Value = match text.first() {
        None => Value::Null,
        Some(b'{') => serde_json::from_slice(text).map_err(wrong)?,
        Some(_) => serde_saphyr::from_slice(text).map_err(wrong)?,
    };
    // A list would be taken for the values of the fields.
    if !object.is_object() && !object.is_null() {
        return Err(wrong("it is not an object"));
    }
    remove_nulls(&mut object);
    Ok(object)
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

fn wrong(error: impl std::fmt::Display) -> Failure {
    Failure::bad_request(format!("Can not unmarshal Request body to struct, error: {error}"))
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
    use kubevirt_api::backup::BackupOptions;
    use serde_json::json;

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

    /// Holds options to what is true of all of them.
    pub(super) fn takes<T: Options + Serialize + PartialEq + std::fmt::Debug>() {
        let properties = schema::<T>()["properties"].as_object().unwrap().clone();
        for field in ["kind", "apiVersion"] {
            let body = json!({ field: "word" });
            assert!(decode::<T>(body.to_string().as_bytes()).is_ok(), "{field} of {properties:?}");
        }
        for field in properties.keys() {
            for body in
                [json!({ field: null }).to_string(), format!("{field}: null\n"), format!("{field}: ~\n")]
            {
                assert_eq!(decode::<T>(body.as_bytes()), Ok(T::default()), "{body}");
            }
        }
    }

    #[test]
    fn options_may_say_what_they_are_and_null_is_nothing() {
        check_all();
    }

    #[test]
    fn null_is_nothing_further_down_as_well() {
        let body = r#"{"name":"a","disk":{"bootOrder":null},"volumeSource":{"dataVolume":{"name":"d","hotpluggable":null}}}"#;
        let options: AddVolume = decode(body.as_bytes()).unwrap();
        assert_eq!(options.disk, Some(json!({})));
        let backup = checked::<BackupOptions>(br#"{"backupName":"b","skipQuiesce":null,"kind":"X"}"#);
        assert_eq!(backup.unwrap(), r#"{"backupName":"b","kind":"X"}"#);
    }

    #[test]
    fn a_wrong_body_is_told_by_its_field() {
        for (body, field) in [
            (r#"{"pausd":true}"#, "pausd"),
            (r#"{"pausd":false}"#, "pausd"),
            ("pausd: true", "pausd"),
            ("{", "EOF"),
            ("[]", "not an object"),
            (r#"{"dryRun":[null]}"#, "null"),
        ] {
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
