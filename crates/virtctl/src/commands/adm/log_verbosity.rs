//! `adm log-verbosity`: how much the components log.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kubevirt_api::kubevirt::KubeVirt;
use serde_json::{Map, Value, json};

use crate::connect::Connect;
use crate::failure::Failure;
use crate::output::say;

/// What a flag without a value stands for: to show. A value of 10 means the same.
const SHOW: u32 = 10;
const MOST: u32 = 9;
/// What a component logs that nothing is set for.
const DEFAULT: u64 = 2;
/// The components, with the name of each in the configuration.
const COMPONENTS: [(&str, &str); 5] = [
    ("virt-api", "virtAPI"),
    ("virt-controller", "virtController"),
    ("virt-handler", "virtHandler"),
    ("virt-launcher", "virtLauncher"),
    ("virt-operator", "virtOperator"),
];

/// Show, set or reset log verbosity, from 0 to 9. The default is normally 2.
///
/// A flag without a value shows the verbosity of a component, one with a value (after an equals sign) sets it; both at
/// once is not possible. --reset empties what is set, and can be combined with setting.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "  # Show the log verbosity of all components:
  {program} adm log-verbosity --all

  # Set that of virt-handler to 7 and that of virt-launcher to 3:
  {program} adm log-verbosity --virt-handler=7 --virt-launcher=3

  # Set all to 3, but that of virt-handler to 7:
  {program} adm log-verbosity --all=3 --virt-handler=7

  # Reset all to the default, but that of virt-handler to 7:
  {program} adm log-verbosity --reset --virt-handler=7")]
pub struct Arguments {
    /// Show or set that of all components
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "10", value_name = "0-9")]
    all: Option<u32>,
    /// Show or set that of virt-api
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "10", value_name = "0-9")]
    virt_api: Option<u32>,
    /// Show or set that of virt-controller
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "10", value_name = "0-9")]
    virt_controller: Option<u32>,
    /// Show or set that of virt-handler
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "10", value_name = "0-9")]
    virt_handler: Option<u32>,
    /// Show or set that of virt-launcher
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "10", value_name = "0-9")]
    virt_launcher: Option<u32>,
    /// Show or set that of virt-operator
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "10", value_name = "0-9")]
    virt_operator: Option<u32>,
    /// Back to the default for all components
    #[arg(long)]
    reset: bool,
}

/// What the flags ask for.
#[derive(Debug, Eq, PartialEq)]
enum Operation {
    /// To show that of these components.
    Show(Vec<&'static str>),
    /// To change it; whether all is emptied first.
    Set { reset: bool, levels: BTreeMap<&'static str, u32> },
}

impl Arguments {
    /// Shows or changes what the installation's object says.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let operation = self.operation()?;
        let session = connect.session().await?;
        let found = Api::<KubeVirt>::all(session.client.clone())
            .list(&ListParams::default())
            .await
            .context("could not list KubeVirt CRs across all namespaces")?;
        let kubevirt = match &found.items[..] {
            [one] => one,
            [] => {
                let next = "Is it the right cluster? --context names another; `kubectl config get-contexts` lists them.";
                return Err(Failure::new("could not detect a KubeVirt installation", next).into());
            }
            _ => bail!("invalid kubevirt installation, more than one KubeVirt resource found"),
        };
        let current = current(kubevirt);
        match operation {
            Operation::Show(components) => {
                for component in components {
                    say!("{component}={}", level(&current, component));
                }
            }
            Operation::Set { reset, levels } => {
                let Some(patch) = patch(&current, reset, &levels) else { return Ok(ExitCode::SUCCESS) };
                let namespace = kubevirt.metadata.namespace.as_deref();
                let name = kubevirt.metadata.name.as_deref().unwrap_or_default();
                session
                    .api::<KubeVirt>(namespace)
                    .patch(name, &PatchParams::default(), &Patch::Merge(patch))
                    .await
                    .context("the KubeVirt resource could not be changed")?;
                say!("successfully set/reset the log verbosity");
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn given(&self) -> [(&'static str, Option<u32>); 5] {
        [
            ("virt-api", self.virt_api),
            ("virt-controller", self.virt_controller),
            ("virt-handler", self.virt_handler),
            ("virt-launcher", self.virt_launcher),
            ("virt-operator", self.virt_operator),
        ]
    }

    fn operation(&self) -> Result<Operation> {
        let every: Vec<(&str, u32)> = [("all", self.all)]
            .into_iter()
            .chain(self.given())
            .filter_map(|(component, level)| Some((component, level?)))
            .collect();
        if let Some((component, _)) = every.iter().find(|(_, level)| *level > MOST && *level != SHOW) {
            bail!("{component}: log verbosity must be 0-{MOST}");
        }
        if self.reset && self.all.is_some() {
            bail!("if any flags in the group [reset all] are set none of the others can be");
        }
        let show = every.iter().any(|(_, level)| *level == SHOW);
        let set = self.reset || every.iter().any(|(_, level)| *level != SHOW);
        match (show, set) {
            (true, true) => {
                bail!("only show or set is allowed: flags without a value show, flags with one set")
            }
            (false, false) => {
                let next = "--all shows the verbosity of all components; --help tells about the others.";
                Err(Failure::new("no flag specified - expecting at least one flag", next).into())
            }
            (true, false) => {
                let shown =
                    self.given().into_iter().filter(|(_, level)| self.all.is_some() || level.is_some());
                Ok(Operation::Show(shown.map(|(component, _)| component).collect()))
            }
            (false, true) => {
                let levels = self
                    .given()
                    .into_iter()
                    .filter_map(|(component, level)| Some((component, level.or(self.all)?)));
                Ok(Operation::Set { reset: self.reset, levels: levels.collect() })
            }
        }
    }
}

/// What is set, by the names of the configuration.
fn current(kubevirt: &KubeVirt) -> Map<String, Value> {
    let spec = serde_json::to_value(&kubevirt.spec).unwrap_or_default();
    let set = spec.pointer("/configuration/developerConfiguration/logVerbosity");
    set.and_then(Value::as_object).cloned().unwrap_or_default()
}

fn key(component: &str) -> &'static str {
    COMPONENTS.iter().find(|(name, _)| *name == component).map_or("", |(_, key)| key)
}

/// What a component logs. Nothing, or zero, is the default.
fn level(current: &Map<String, Value>, component: &str) -> u64 {
    current.get(key(component)).and_then(Value::as_u64).unwrap_or(DEFAULT)
}

/// The change as a merge patch; `None` if there is nothing to change.
fn patch(current: &Map<String, Value>, reset: bool, levels: &BTreeMap<&str, u32>) -> Option<Value> {
    let emptied = current.keys().filter(|_| reset).map(|key| (key.clone(), Value::Null));
    let set = levels.iter().map(|(component, level)| (key(component).to_owned(), Value::from(*level)));
    let changes: Map<String, Value> = emptied.chain(set).collect();
    if changes.is_empty() {
        return None;
    }
    Some(json!({ "spec": { "configuration": { "developerConfiguration": { "logVerbosity": changes } } } }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(flags: &[(&str, u32)], reset: bool) -> Arguments {
        let of = |name| flags.iter().find(|(flag, _)| *flag == name).map(|(_, level)| *level);
        Arguments {
            all: of("all"),
            virt_api: of("virt-api"),
            virt_controller: of("virt-controller"),
            virt_handler: of("virt-handler"),
            virt_launcher: of("virt-launcher"),
            virt_operator: of("virt-operator"),
            reset,
        }
    }

    #[test]
    fn flags_show_or_set_but_never_both() {
        let names = || COMPONENTS.map(|(name, _)| name).to_vec();
        let set = |reset, levels: &[(&'static str, u32)]| {
            Some(Operation::Set { reset, levels: levels.iter().copied().collect() })
        };
        let all_three = names().into_iter().map(|name| (name, if name == "virt-api" { 7 } else { 3 }));
        let all_three: Vec<_> = all_three.collect();
        for (flags, reset, expected) in [
            (vec![("all", SHOW)], false, Some(Operation::Show(names()))),
            (vec![("virt-api", SHOW)], false, Some(Operation::Show(vec!["virt-api"]))),
            (vec![("virt-api", 0)], false, set(false, &[("virt-api", 0)])),
            (vec![("all", 3), ("virt-api", 7)], false, set(false, &all_three)),
            (vec![("virt-handler", 7)], true, set(true, &[("virt-handler", 7)])),
            (vec![], true, set(true, &[])),
            (vec![("all", 3)], true, None),
            (vec![("all", 11)], false, None),
            (vec![("virt-api", SHOW), ("virt-handler", 1)], false, None),
            (vec![("virt-api", SHOW)], true, None),
            (vec![], false, None),
        ] {
            assert_eq!(arguments(&flags, reset).operation().ok(), expected, "{flags:?} {reset}");
        }
    }

    #[test]
    fn a_reset_takes_away_what_is_set_and_nothing_else() {
        let current = json!({"virtAPI": 5, "nodeVerbosity": {"a": 1}}).as_object().cloned().unwrap();
        assert_eq!(level(&current, "virt-api"), 5);
        assert_eq!(level(&current, "virt-handler"), DEFAULT);
        let changes = |patch: Option<Value>| {
            patch
                .map(|patch| patch["spec"]["configuration"]["developerConfiguration"]["logVerbosity"].clone())
        };
        let levels = BTreeMap::from([("virt-handler", 7)]);
        assert_eq!(changes(patch(&current, false, &levels)), Some(json!({"virtHandler": 7})));
        assert_eq!(
            changes(patch(&current, true, &levels)),
            Some(json!({"virtAPI": null, "nodeVerbosity": null, "virtHandler": 7}))
        );
        assert_eq!(patch(&Map::new(), true, &BTreeMap::new()), None);
    }
}
