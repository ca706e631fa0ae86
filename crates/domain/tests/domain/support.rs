//! Cases of the golden tests: a VMI and what differs from the usual facts.

use std::fs;
use std::path::{Path, PathBuf};

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::{HostFacts, QemuFacts};
use serde_json::Value;

/// One case: a file with a VMI and, in a second document, facts that differ from `facts.yaml`.
pub struct Case {
    /// Name of the file without its end.
    pub name: String,
    /// The machine.
    pub vmi: VirtualMachineInstance,
    /// The host.
    pub host: HostFacts,
    /// The QEMU.
    pub qemu: QemuFacts,
}

/// Folder of the cases.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// All cases, by name.
pub fn cases() -> Vec<Case> {
    let usual = document(&fs::read_to_string(folder().join("../facts.yaml")).unwrap());
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    files.sort();
    files.iter().map(|path| case(path, &usual)).collect()
}

fn case(path: &Path, usual: &Value) -> Case {
    let text = fs::read_to_string(path).unwrap();
    let (vmi, different) = text.split_once("\n---\n").unwrap_or((&text, "{}"));
    let mut facts = usual.clone();
    merge(&mut facts, document(different));
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let mut vmi: VirtualMachineInstance = decode(&name, document(vmi));
    vmi.metadata.name.get_or_insert_with(|| name.clone());
    vmi.metadata.namespace.get_or_insert_with(|| "default".into());
    vmi.metadata.uid.get_or_insert_with(|| "ad002f99-0cb6-4989-8b96-908c2c933bf7".into());
    Case { vmi, host: decode(&name, facts["host"].clone()), qemu: decode(&name, facts["qemu"].clone()), name }
}

fn decode<T: serde::de::DeserializeOwned>(name: &str, value: Value) -> T {
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn document(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}
