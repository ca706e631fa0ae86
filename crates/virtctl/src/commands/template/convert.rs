//! `template convert`: a template of OpenShift as one of KubeVirt.

use anyhow::{Context as _, Result, bail};
use http::Method;
use kubevirt_api::names::groups;
use serde_json::{Map, Value, json};

use super::{Origin, VERSION};
use crate::connect::Connect;
use crate::failure::Failure;
use crate::manifest;
use crate::output::{self, Format};
use crate::subresource::{self, escaped};

/// Convert a Template of OpenShift into a VirtualMachineTemplate.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the Template
    #[arg(value_name = "NAME")]
    template: Option<String>,
    /// Name of the Template
    #[arg(long, conflicts_with = "file")]
    name: Option<String>,
    /// File with a Template, or - for standard input
    #[arg(long, short)]
    file: Option<String>,
    /// Format: yaml or json
    #[arg(long, short, default_value = "yaml")]
    output: String,
}

const EXAMPLES: &str = "  # A template of the cluster
  {program} template convert mytemplate | kubectl apply -f -

  # A file
  {program} template convert --file mytemplate.yaml --output json";

impl Arguments {
    pub(super) async fn run(self, connect: &Connect) -> Result<()> {
        let origin = Origin::of(self.template.as_deref(), self.name.as_deref(), self.file.as_deref())?;
        let format = Format::parse(&self.output)?;
        let template = match &origin {
            Origin::File(file) => manifest::read(file)?,
            Origin::Cluster(name) => remote(connect, name).await?,
        };
        manifest::expect(&template, "Template")?;
        output::print(&format.render(&converted(template)?)?)
    }
}

async fn remote(connect: &Connect, name: &str) -> Result<Value> {
    let session = connect.session().await?;
    let namespace = &session.namespace;
    let path = format!(
        "/apis/template.openshift.io/v1/namespaces/{}/templates/{}",
        escaped(namespace),
        escaped(name)
    );
    let answer = session.call(Method::GET, &path, None).await.map_err(|error| {
        explained(error).context(format!("error fetching remote Template {namespace}/{name}"))
    })?;
    serde_json::from_slice(&answer).context("the answer cannot be understood")
}

/// Only OpenShift has such templates.
fn explained(error: subresource::Error) -> anyhow::Error {
    let refusal = error.refusal();
    if refusal
        .is_some_and(|refusal| refusal.is_not_found() && !refusal.message.contains("templates.template"))
    {
        let next = "Templates are known to OpenShift only; --file converts one that is in a file.";
        return Failure::new(format!("this cluster has no Templates ({error})"), next).into();
    }
    error.into()
}

/// The same template in KubeVirt's words.
fn converted(mut template: Value) -> Result<Value> {
    let mut objects = match template["objects"].take() {
        Value::Array(objects) => objects,
        _ => Vec::new(),
    };
    let (Some(mut machine), true) = (objects.pop(), objects.is_empty()) else {
        let found = if objects.is_empty() { 0 } else { objects.len() + 1 };
        bail!("template must contain exactly one object, found {found}");
    };
    if !machine.is_object() {
        bail!("objects[0] is not an object");
    }
    label(&mut machine, template["labels"].take());
    let mut spec = Map::new();
    spec.insert("virtualMachine".into(), machine);
    let parameters: Vec<_> = template["parameters"].as_array().into_iter().flatten().map(parameter).collect();
    if !parameters.is_empty() {
        spec.insert("parameters".into(), parameters.into());
    }
    if let Some(message) = template["message"].as_str().filter(|message| !message.is_empty()) {
        spec.insert("message".into(), message.into());
    }
    Ok(json!({
        "apiVersion": format!("{}/{VERSION}", groups::TEMPLATE),
        "kind": "VirtualMachineTemplate",
        "metadata": only(&template["metadata"], &["name", "namespace", "labels", "annotations"]),
        "spec": spec,
    }))
}

/// OpenShift puts these labels on every object when it processes the template; here the object has them already.
fn label(machine: &mut Value, labels: Value) {
    let Value::Object(labels) = labels else { return };
    if labels.is_empty() {
        return;
    }
    if !machine["metadata"].is_object() {
        machine["metadata"] = json!({});
    }
    if !machine["metadata"]["labels"].is_object() {
        machine["metadata"]["labels"] = json!({});
    }
    for (name, value) in labels {
        machine["metadata"]["labels"][name] = value;
    }
}

fn parameter(parameter: &Value) -> Value {
    let fields = ["name", "displayName", "description", "value", "generate", "from", "required"];
    only(parameter, &fields)
}

/// These fields of an object, as far as they are there.
fn only(object: &Value, names: &[&str]) -> Value {
    let fields = names.iter().filter_map(|name| Some(((*name).to_owned(), object.get(name)?.clone())));
    Value::Object(fields.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_converted() {
        let template = json!({
            "apiVersion": "template.openshift.io/v1", "kind": "Template",
            "metadata": { "name": "t", "namespace": "ns", "labels": { "a": "b" }, "annotations": { "c": "d" }, "uid": "u" },
            "message": "Hello",
            "labels": { "from": "template" },
            "objects": [{ "kind": "VirtualMachine", "metadata": { "name": "${NAME}", "labels": { "x": "y" } } }],
            "parameters": [{ "name": "NAME", "displayName": "Name", "description": "What", "value": "v",
                "generate": "expression", "from": "[a-z]{3}", "required": true }],
        });
        let expected = json!({
            "apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplate",
            "metadata": { "name": "t", "namespace": "ns", "labels": { "a": "b" }, "annotations": { "c": "d" } },
            "spec": {
                "message": "Hello",
                "parameters": template["parameters"],
                "virtualMachine": { "kind": "VirtualMachine",
                    "metadata": { "name": "${NAME}", "labels": { "x": "y", "from": "template" } } },
            },
        });
        assert_eq!(converted(template).unwrap(), expected);
    }

    #[test]
    fn a_template_has_one_object() {
        for (objects, found) in [(json!([]), 0), (Value::Null, 0), (json!([{}, {}]), 2)] {
            let error = converted(json!({ "objects": objects })).unwrap_err().to_string();
            assert_eq!(error, format!("template must contain exactly one object, found {found}"));
        }
        let bare = converted(json!({ "objects": [{ "spec": {} }], "labels": { "a": "b" } })).unwrap();
        assert_eq!(
            bare["spec"]["virtualMachine"],
            json!({ "spec": {}, "metadata": { "labels": { "a": "b" } } })
        );
    }
}
