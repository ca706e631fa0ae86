//! `template process`: a machine from a template, here or in the cluster.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use http::Method;
use kubevirt_api::names::groups;
use kubevirt_api::template::VirtualMachineTemplateSpec;
use serde_json::{Value, json};

use super::{Origin, VERSION, parameters, path};
use crate::connect::{Connect, Session};
use crate::failure::Failure;
use crate::output::{self, Format, note, say};
use crate::subresource::{self, escaped};
use crate::{flags, manifest, names};

/// Make the virtual machine that a template describes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the VirtualMachineTemplate
    #[arg(value_name = "NAME")]
    template: Option<String>,
    /// Name of the VirtualMachineTemplate
    #[arg(long, conflicts_with = "file")]
    name: Option<String>,
    /// File with a VirtualMachineTemplate, or - for standard input
    #[arg(long, short, conflicts_with_all = ["local", "create"])]
    file: Option<String>,
    /// Format: yaml or json
    #[arg(long, short, default_value = "yaml")]
    output: String,
    /// Value of a parameter, as in KEY=VALUE; several with commas or several times
    #[arg(long, short, value_name = "PARAMS", value_parser = flags::pairs, conflicts_with = "params_file")]
    param: Vec<BTreeMap<String, String>>,
    /// File with values of parameters, as a dictionary in YAML or JSON
    #[arg(long, value_name = "FILE")]
    params_file: Option<String>,
    /// Process a template of the cluster here instead of there
    #[arg(long, conflicts_with = "create")]
    local: bool,
    /// Create the virtual machine in the cluster
    #[arg(long, conflicts_with = "print_params")]
    create: bool,
    /// Only print the parameters of the template
    #[arg(long)]
    print_params: bool,
}

const EXAMPLES: &str = "  # Process a template in the cluster, with parameters
  {program} template process mytemplate --param CPUS=4 --param MEMORY=8Gi | kubectl apply -f -

  # Create the virtual machine
  {program} template process mytemplate --create

  # Process a file, without a cluster
  {program} template process --file mytemplate.yaml --params-file parameters.yaml

  # See what parameters there are
  {program} template process mytemplate --print-params";

impl Arguments {
    pub(super) async fn run(self, connect: &Connect) -> Result<()> {
        let origin = Origin::of(self.template.as_deref(), self.name.as_deref(), self.file.as_deref())?;
        let format = Format::parse(&self.output)?;
        if self.print_params {
            let template = template(connect, &origin).await?;
            let parameters = template.parameters.unwrap_or_default();
            return output::print(&format.render(&serde_json::to_value(parameters)?)?);
        }
        let given = match &self.params_file {
            Some(file) => dictionary(&manifest::read(file).context("error reading params file")?)?,
            None => self.param.into_iter().flatten().collect(),
        };
        let name = match &origin {
            Origin::Cluster(name) if !self.local => name,
            _ => return local(template(connect, &origin).await?, &given, format),
        };
        let (action, doing) =
            if self.create { ("create", "creating VirtualMachine from") } else { ("process", "processing") };
        let processed = remote(connect.session().await?, name, action, doing, &given).await?;
        if self.create {
            let machine = &processed["virtualMachine"]["metadata"]["name"];
            say!("virtualmachine.{}/{} created", groups::KUBEVIRT, machine.as_str().unwrap_or_default());
            return Ok(());
        }
        tell(processed["message"].as_str());
        output::print(&format.render(&processed["virtualMachine"])?)
    }
}

fn local(
    template: VirtualMachineTemplateSpec,
    given: &BTreeMap<String, String>,
    format: Format,
) -> Result<()> {
    let processed = parameters::process(template, given, &mut |letters| names::secret_letter(letters));
    let processed = processed.context("error processing VirtualMachineTemplate locally")?;
    for warning in &processed.warnings {
        note!("Warning: {warning}");
    }
    tell(processed.message.as_deref());
    output::print(&format.render(&processed.machine)?)
}

/// What the template says about the machine, beside the machine.
fn tell(message: Option<&str>) {
    if let Some(message) = message.filter(|message| !message.is_empty()) {
        note!("{message}");
    }
}

async fn template(connect: &Connect, origin: &Origin) -> Result<VirtualMachineTemplateSpec> {
    let mut object = match origin {
        Origin::File(file) => manifest::read(file)?,
        Origin::Cluster(name) => {
            let session = connect.session().await?;
            let namespace = &session.namespace;
            let path = format!("{}/{}", path("virtualmachinetemplates", namespace), escaped(name));
            let answer = session.call(Method::GET, &path, None).await.with_context(|| {
                format!("error fetching remote VirtualMachineTemplate {namespace}/{name}")
            })?;
            serde_json::from_slice(&answer).context("the answer cannot be understood")?
        }
    };
    manifest::expect(&object, "VirtualMachineTemplate")?;
    serde_json::from_value(object["spec"].take()).context("error decoding VirtualMachineTemplate")
}

async fn remote(
    session: &Session,
    name: &str,
    action: &str,
    doing: &str,
    given: &BTreeMap<String, String>,
) -> Result<Value> {
    let (group, namespace) = (groups::TEMPLATE_SUBRESOURCES, &session.namespace);
    let path = format!(
        "/apis/{group}/{VERSION}/namespaces/{}/virtualmachinetemplates/{}/{action}",
        escaped(namespace),
        escaped(name)
    );
    let options =
        json!({ "apiVersion": format!("{group}/{VERSION}"), "kind": "ProcessOptions", "parameters": given });
    let answer = session.call(Method::POST, &path, Some(&options)).await.map_err(|error| {
        explained(error, action)
            .context(format!("error {doing} remote VirtualMachineTemplate {namespace}/{name}"))
    })?;
    let processed: Value = serde_json::from_slice(&answer).context("the answer cannot be understood")?;
    if !processed["virtualMachine"].is_object() {
        bail!("the cluster answered without a virtual machine");
    }
    Ok(processed)
}

/// A cluster without the server side says so, or answers as if the path were a file that is not there.
fn explained(error: subresource::Error, action: &str) -> anyhow::Error {
    let missing = error.refusal().is_some_and(|refusal| match refusal.code {
        501 | 503 => true,
        404 => !refusal.message.contains("virtualmachinetemplate"),
        _ => false,
    });
    if !missing {
        return error.into();
    }
    let (what, next) = match action {
        "process" => ("process templates", "Add --local to process the template here."),
        _ => (
            "create machines from templates",
            "Process the template here: `virtctl template process --local NAME | kubectl create -f -`.",
        ),
    };
    Failure::new(format!("this cluster does not {what} ({error})"), next).into()
}

/// Parameters of a file; numbers and truth values are texts here.
fn dictionary(object: &Value) -> Result<BTreeMap<String, String>> {
    let fields = object.as_object().into_iter().flatten();
    fields
        .map(|(name, value)| match value {
            Value::String(text) => Ok((name.clone(), text.clone())),
            Value::Number(_) | Value::Bool(_) => Ok((name.clone(), value.to_string())),
            _ => bail!("error reading params file: the value of {name} is not a text"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn dictionaries_hold_texts() {
        let all = dictionary(&json!({ "A": "x", "B": 4, "C": true })).unwrap();
        assert_eq!(all.into_values().collect::<Vec<_>>(), ["x", "4", "true"]);
        assert!(dictionary(&json!({ "A": ["x"] })).is_err());
    }

    #[test]
    fn a_cluster_without_templates_is_told_from_a_missing_template() {
        let words = |status: StatusCode, body: &str| {
            let error = subresource::refusal(status, body.as_bytes());
            crate::failure::words(&explained(error.into(), "process"))
        };
        assert!(words(StatusCode::NOT_FOUND, "404 page not found").contains("--local"));
        assert!(words(StatusCode::SERVICE_UNAVAILABLE, "").contains("--local"));
        let body =
            r#"{"reason": "NotImplemented", "message": "virtualmachinetemplates are not processed here"}"#;
        assert!(words(StatusCode::NOT_IMPLEMENTED, body).contains("--local"));
        let body = r#"{"message": "virtualmachinetemplates.template.kubevirt.io \"a\" not found"}"#;
        assert!(!words(StatusCode::NOT_FOUND, body).contains("--local"));
    }
}
