//! From a template and parameters to a machine: pure.

use std::collections::BTreeMap;

use kubevirt_api::names::groups;
use kubevirt_api::template::{Parameter, VirtualMachineTemplateSpec};
use kubevirt_api::vm::VirtualMachine;
use serde_json::Value;

use super::expression::{self, Pick};
use super::substitute;

/// Why a template makes no machine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter was given that the template has not got.
    #[error("error merging template parameters: parameter {0} not found in template")]
    NotInTemplate(String),
    /// The template refers to what is not there.
    #[error("error validating template parameters: {0}")]
    Undefined(String),
    /// Something is wrong with one of the template's parameters.
    #[error("spec.parameters[{index}].{field}: {problem}")]
    Parameter {
        /// Which.
        index: usize,
        /// What of it.
        field: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The machine has no value for a placeholder.
    #[error("spec.virtualMachine: {0}")]
    Machine(#[from] substitute::Error),
    /// There is no machine in the template.
    #[error("spec.virtualMachine: virtualMachine is required and cannot be empty")]
    Empty,
    /// What comes out is not a machine.
    #[error("spec.virtualMachine: failed to convert into a VirtualMachine: {0}")]
    NotAMachine(String),
    /// The message has no value for a placeholder.
    #[error("spec.message: {0}")]
    Message(#[source] substitute::Error),
}

/// A machine from a template.
#[derive(Debug, PartialEq)]
pub struct Processed {
    /// The machine.
    pub machine: Value,
    /// What the template says about it.
    pub message: Option<String>,
    /// What is odd about the template.
    pub warnings: Vec<String>,
}

/// Makes the machine that a template describes with these parameters.
pub fn process(
    mut template: VirtualMachineTemplateSpec,
    given: &BTreeMap<String, String>,
    pick: &mut Pick<'_>,
) -> Result<Processed, Error> {
    let mut parameters = template.parameters.take().unwrap_or_default();
    merge(&mut parameters, given)?;
    if template.virtual_machine.as_object().is_none_or(serde_json::Map::is_empty) {
        return Err(Error::Empty);
    }
    let message = template.message.unwrap_or_default();
    let warnings = check(&template.virtual_machine, &message, &parameters)?;
    let values = values(&parameters, pick)?;
    let mut machine = template.virtual_machine;
    forget_namespace(&mut machine);
    let mut machine = substitute::object(machine, &values)?;
    machine["apiVersion"] = groups::KUBEVIRT_V1.into();
    machine["kind"] = "VirtualMachine".into();
    is_machine(&machine)?;
    let message = substitute::text(&message, &values).map_err(Error::Message)?;
    Ok(Processed { machine, message: Some(message).filter(|message| !message.is_empty()), warnings })
}

/// Puts given values in the place of defaults.
fn merge(parameters: &mut [Parameter], given: &BTreeMap<String, String>) -> Result<(), Error> {
    for (name, value) in given {
        let known = parameters.iter_mut().find(|parameter| parameter.name == *name);
        known.ok_or_else(|| Error::NotInTemplate(name.clone()))?.value = Some(value.clone());
    }
    Ok(())
}

/// Whether every placeholder has a parameter; parameters without a placeholder are worth a warning.
fn check(machine: &Value, message: &str, parameters: &[Parameter]) -> Result<Vec<String>, Error> {
    let mut used = substitute::all_names(machine);
    used.extend(substitute::names(message));
    let is_known = |name: &String| parameters.iter().any(|parameter| parameter.name == *name);
    let unknown: Vec<_> = used.iter().filter(|name| !is_known(name)).collect();
    if !unknown.is_empty() {
        let each =
            unknown.iter().map(|name| format!("spec.virtualMachine: references undefined parameter {name}"));
        return Err(Error::Undefined(each.collect::<Vec<_>>().join(", ")));
    }
    let unused = parameters.iter().enumerate().filter(|(_, parameter)| !used.contains(&parameter.name));
    let words = |(index, parameter): (usize, &Parameter)| {
        format!("spec.parameters[{index}].name: {} is defined but never referenced", parameter.name)
    };
    Ok(unused.map(words).collect())
}

/// The value of each parameter: given, by default or at random.
fn values(parameters: &[Parameter], pick: &mut Pick<'_>) -> Result<BTreeMap<String, String>, Error> {
    let mut values = BTreeMap::new();
    for (index, parameter) in parameters.iter().enumerate() {
        let wrong = |field, problem: String| Error::Parameter { index, field, problem };
        let name = &parameter.name;
        if name.is_empty() {
            return Err(wrong("name", "parameter name is empty".into()));
        }
        let value = one(parameter, pick).map_err(|(field, problem)| wrong(field, problem))?;
        if values.insert(name.clone(), value).is_some() {
            return Err(wrong("name", format!("there is another parameter '{name}'")));
        }
    }
    Ok(values)
}

fn one(parameter: &Parameter, pick: &mut Pick<'_>) -> Result<String, (&'static str, String)> {
    let name = &parameter.name;
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(value) = given(&parameter.value) {
        return Ok(value);
    }
    let made = match given(&parameter.generate).as_deref() {
        None => String::new(),
        Some("expression") => {
            let from = given(&parameter.from)
                .ok_or_else(|| ("from", format!("from cannot be empty for parameter '{name}'")))?;
            expression::value(&from, pick).map_err(|error| ("from", error.to_string()))?
        }
        Some(other) => {
            return Err(("generate", format!("unknown generator name '{other}' for parameter '{name}'")));
        }
    };
    if made.is_empty() && parameter.required == Some(true) {
        return Err(("value", format!("parameter '{name}' is required and a value must be specified")));
    }
    Ok(made)
}

/// The machine goes where its user wants it, unless the template has a parameter for that.
fn forget_namespace(machine: &mut Value) {
    let Some(metadata) = machine.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let is_open = metadata
        .get("namespace")
        .and_then(Value::as_str)
        .is_some_and(|namespace| !substitute::names(namespace).is_empty());
    if !is_open {
        metadata.remove("namespace");
    }
}

/// Whether our types hold all of it: nothing of the wrong type and nothing that they do not know.
fn is_machine(machine: &Value) -> Result<(), Error> {
    let typed: VirtualMachine =
        serde_json::from_value(machine.clone()).map_err(|error| Error::NotAMachine(error.to_string()))?;
    let held = serde_json::to_value(typed).map_err(|error| Error::NotAMachine(error.to_string()))?;
    match lost(machine, &held) {
        None => Ok(()),
        Some(path) => Err(Error::NotAMachine(format!("unknown field \"{path}\""))),
    }
}

/// The path of the first field that is in one object and not in the other.
fn lost(from: &Value, held: &Value) -> Option<String> {
    match (from, held) {
        (Value::Object(from), Value::Object(held)) => from.iter().find_map(|(name, value)| {
            match held.get(name) {
                // A field that holds nothing is as good as one that is left out.
                None => (!value.is_null()).then(|| name.clone()),
                Some(kept) => lost(value, kept).map(|below| format!("{name}.{below}")),
            }
        }),
        (Value::Array(from), Value::Array(held)) => from
            .iter()
            .zip(held)
            .enumerate()
            .find_map(|(index, (from, held))| lost(from, held).map(|below| format!("[{index}].{below}"))),
        _ => None,
    }
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;
