//! `template`: machines from templates, and templates from machines.

mod convert;
mod create;
mod expression;
mod parameters;
mod process;
mod substitute;

use std::process::ExitCode;

use anyhow::{Result, bail};
use kubevirt_api::names::groups;

use crate::connect::Connect;
use crate::subresource::escaped;

/// The version of templates that is spoken.
const VERSION: &str = "v1beta1";

/// Make virtual machines from templates, and templates.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Process(process::Arguments),
    Create(create::Arguments),
    Convert(convert::Arguments),
}

impl Arguments {
    /// Does what is asked with a template.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        match self.action {
            Action::Process(arguments) => arguments.run(connect).await?,
            Action::Create(arguments) => arguments.run(connect).await?,
            Action::Convert(arguments) => arguments.run(connect).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Where a template comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    /// The cluster, by name.
    Cluster(String),
    /// A file.
    File(String),
}

impl Origin {
    /// From the argument, `--name` and `--file`, of which one is needed.
    fn of(argument: Option<&str>, name: Option<&str>, file: Option<&str>) -> Result<Self> {
        let given = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        match (given(argument), given(name), given(file)) {
            (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => {
                bail!("only one of name or file can be provided")
            }
            (Some(_), Some(_), _) => bail!("provide name either from positional argument or from flag"),
            (Some(name), None, None) | (None, Some(name), None) => Ok(Self::Cluster(name)),
            (None, None, Some(file)) => Ok(Self::File(file)),
            (None, None, None) => bail!("name or file must be provided"),
        }
    }
}

/// The path of templates, or of requests for them.
fn path(resource: &str, namespace: &str) -> String {
    format!("/apis/{}/{VERSION}/namespaces/{}/{resource}", groups::TEMPLATE, escaped(namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_origin_is_needed() {
        let cluster = |name: &str| Origin::Cluster(name.to_owned());
        assert_eq!(Origin::of(Some("a"), None, None).unwrap(), cluster("a"));
        assert_eq!(Origin::of(None, Some("a"), None).unwrap(), cluster("a"));
        assert_eq!(Origin::of(None, None, Some("-")).unwrap(), Origin::File("-".to_owned()));
        for (argument, name, file, problem) in [
            (Some("a"), None, Some("f"), "only one of name or file can be provided"),
            (Some("a"), Some("b"), None, "provide name either from positional argument or from flag"),
            (None, None, None, "name or file must be provided"),
        ] {
            assert_eq!(Origin::of(argument, name, file).unwrap_err().to_string(), problem);
        }
    }
}
