//! What the flags of `vmexport` ask for, and which of them go together.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use kubevirt_api::duration::Duration as Text;

use super::Arguments;
use super::download::{After, Download, Format, Output, Route, What};
use super::export::{self, New};

/// How long an export may take to be ready if nobody says.
pub const READINESS: Duration = Duration::from_secs(120);

/// The flags of a download that is not of a disk.
const OF_MANIFEST: [&str; 3] = ["manifest", "include-secret", "manifest-output-format"];

/// What to do.
#[derive(Debug, PartialEq)]
pub enum Plan {
    /// Make an export.
    Create(New),
    /// Delete the export of this name.
    Delete(String),
    /// Fetch something from one.
    Download(Box<Download>),
}

/// Why nothing is done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No such action.
    #[error("invalid function '{0}'; use create, delete or download")]
    Action(String),
    /// The flag is for something else.
    #[error("the '--{0}' flag is incompatible with '{1}'")]
    Incompatible(&'static str, &'static str),
    /// Nothing to export.
    #[error(
        "need to specify export kind when attempting to create a VirtualMachineExport [--pvc|--vm|--snapshot|--vmtemplate]"
    )]
    NoSource,
    /// Something to export, where it makes no sense.
    #[error("should not specify export kind")]
    Source,
    /// A value that is none.
    #[error("--{0} is not a valid value, acceptable values are {1}")]
    Value(&'static str, &'static str),
    /// Bytes for a screen.
    #[error(
        "warning: Binary output can mess up your terminal. Use '--output -' to output into stdout anyway or consider \
         '--output <FILE>' to save to a file"
    )]
    NoOutput,
}

/// Reads the flags.
pub fn of(arguments: &Arguments) -> Result<Plan, Error> {
    let given = given(arguments);
    let refuse = |action: &'static str, allowed: &[&str]| {
        let other = given.iter().find(|flag| !allowed.contains(flag) && !OF_MANIFEST.contains(flag));
        other.map_or(Ok(()), |flag| Err(Error::Incompatible(flag, action)))
    };
    let name = arguments.name.clone();
    match arguments.action.to_ascii_lowercase().as_str() {
        "create" => {
            refuse("create", &["ttl", "labels", "annotations", "readiness-timeout"])?;
            Ok(Plan::Create(new(arguments)?.ok_or(Error::NoSource)?))
        }
        "delete" => {
            refuse("delete", &["ttl"])?;
            if source(arguments).is_some() { Err(Error::Source) } else { Ok(Plan::Delete(name)) }
        }
        "download" => Ok(Plan::Download(Box::new(download(arguments)?))),
        other => Err(Error::Action(other.to_owned())),
    }
}

/// The flags that are given and change nothing in what the plan does.
pub fn idle(arguments: &Arguments, plan: &Plan) -> Vec<&'static str> {
    let given = given(arguments).into_iter();
    let is_idle = |flag: &&str| match (plan, *flag) {
        (Plan::Create(_), flag) => flag == "readiness-timeout" || OF_MANIFEST.contains(&flag),
        (Plan::Delete(_), _) => true,
        (Plan::Download(download), "ttl" | "labels" | "annotations") => download.new.is_none(),
        (Plan::Download(_), "local-port") => !arguments.port_forward,
        (Plan::Download(download), "format") => matches!(download.what, What::Manifest { .. }),
        (Plan::Download(_), flag) => OF_MANIFEST.contains(&flag) && !arguments.manifest,
    };
    given.filter(is_idle).collect()
}

/// The flags that are given, beside those that say what is exported.
fn given(arguments: &Arguments) -> Vec<&'static str> {
    let all = [
        ("output", is(&arguments.output)),
        ("volume", is(&arguments.volume)),
        ("insecure", arguments.insecure),
        ("keep-vme", arguments.keep_vme),
        ("delete-vme", arguments.delete_vme),
        ("port-forward", arguments.port_forward),
        ("local-port", arguments.local_port != "0"),
        ("format", is(&arguments.format)),
        ("service-url", is(&arguments.service_url)),
        ("retry", arguments.retry != 0),
        ("readiness-timeout", is(&arguments.readiness_timeout)),
        ("labels", !arguments.labels.is_empty()),
        ("annotations", !arguments.annotations.is_empty()),
        ("ttl", is(&arguments.ttl)),
        ("manifest", arguments.manifest),
        ("include-secret", arguments.include_secret),
        ("manifest-output-format", is(&arguments.manifest_output_format)),
    ];
    all.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag).collect()
}

fn is(text: &Option<String>) -> bool {
    text.as_deref().is_some_and(|text| !text.is_empty())
}

fn source(arguments: &Arguments) -> Option<TypedLocalObjectReference> {
    let of = |name: &Option<String>, make: fn(&str) -> TypedLocalObjectReference| {
        name.as_deref().filter(|name| !name.is_empty()).map(make)
    };
    of(&arguments.vm, export::machine)
        .or_else(|| of(&arguments.snapshot, export::snapshot))
        .or_else(|| of(&arguments.pvc, export::claim))
        .or_else(|| of(&arguments.vmtemplate, export::template))
}

/// The export to make, if there is something to make it of.
fn new(arguments: &Arguments) -> Result<Option<New>, Error> {
    let ttl = time("ttl", &arguments.ttl)?.and(arguments.ttl.clone()).map(Text);
    let labels = pairs("labels", &arguments.labels)?;
    let annotations = pairs("annotations", &arguments.annotations)?;
    let made = |source| New { name: arguments.name.clone(), source, ttl, labels, annotations };
    Ok(source(arguments).map(made))
}

fn pairs(flag: &'static str, texts: &[String]) -> Result<BTreeMap<String, String>, Error> {
    let pair = |text: &String| {
        let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty())?;
        Some((key.to_owned(), value.to_owned()))
    };
    texts.iter().map(|text| pair(text).ok_or(Error::Value(flag, "key=value pairs"))).collect()
}

fn time(flag: &'static str, text: &Option<String>) -> Result<Option<Duration>, Error> {
    let Some(text) = text.as_deref().filter(|text| !text.is_empty()) else { return Ok(None) };
    let parsed = Text(text.to_owned()).parse().ok().filter(|time| !time.is_negative());
    let time = parsed.map(Duration::from).filter(|time| !time.is_zero());
    time.ok_or(Error::Value(flag, "durations such as 30s, 5m or 2h")).map(Some)
}

fn download(arguments: &Arguments) -> Result<Download, Error> {
    let new = new(arguments)?;
    let what = what(arguments)?;
    Ok(Download {
        name: arguments.name.clone(),
        new,
        route: route(arguments)?,
        insecure: arguments.insecure,
        retries: u32::try_from(arguments.retry).map_err(|_| Error::Value("retry", "positive integers"))?,
        readiness: time("readiness-timeout", &arguments.readiness_timeout)?.unwrap_or(READINESS),
        after: match (arguments.keep_vme, arguments.delete_vme) {
            (true, _) => After::Keep,
            (_, true) => After::Delete,
            _ => After::DeleteOwn,
        },
        output: match arguments.output.as_deref().filter(|path| !path.is_empty()) {
            None if matches!(what, What::Manifest { .. }) => Output::Stdout,
            None => return Err(Error::NoOutput),
            Some("-") => Output::Stdout,
            Some(path) => Output::File(PathBuf::from(path)),
        },
        what,
    })
}

fn route(arguments: &Arguments) -> Result<Route, Error> {
    let port: u16 = match (arguments.port_forward, arguments.local_port.as_str()) {
        (true, port) => port.parse().map_err(|_| Error::Value("local-port", "valid port numbers"))?,
        (false, _) => 0,
    };
    match (arguments.port_forward, arguments.service_url.clone().filter(|url| !url.is_empty())) {
        (true, Some(_)) => Err(Error::Incompatible("service-url", "--port-forward")),
        (true, None) => Ok(Route::Forward(port)),
        (false, Some(url)) => Ok(Route::Service(host(&url).to_owned())),
        (false, None) => Ok(Route::External),
    }
}

/// The host and port of what may be a whole address.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

fn what(arguments: &Arguments) -> Result<What, Error> {
    let format = match arguments.format.as_deref() {
        None | Some("") => Format::Default,
        Some("gzip") => Format::Gzip,
        Some("raw") => Format::Raw,
        Some("oci") => return oci(arguments),
        Some(_) => return Err(Error::Value("format", "gzip/raw/oci")),
    };
    if arguments.manifest {
        return manifest(arguments);
    }
    Ok(What::Volume { name: arguments.volume.clone().filter(|name| !name.is_empty()), format })
}

fn oci(arguments: &Arguments) -> Result<What, Error> {
    for (flag, given) in
        [("volume", is(&arguments.volume)), ("manifest", arguments.manifest), ("pvc", is(&arguments.pvc))]
    {
        if given {
            return Err(Error::Incompatible(flag, "--format=oci"));
        }
    }
    Ok(What::Oci)
}

fn manifest(arguments: &Arguments) -> Result<What, Error> {
    for (flag, given) in [("volume", is(&arguments.volume)), ("pvc", is(&arguments.pvc))] {
        if given {
            return Err(Error::Incompatible(flag, "--manifest"));
        }
    }
    let format = arguments.manifest_output_format.as_deref().unwrap_or_default().to_ascii_lowercase();
    let json = match format.as_str() {
        "json" => true,
        "yaml" | "" => false,
        _ => return Err(Error::Value("manifest-output-format", "json/yaml")),
    };
    Ok(What::Manifest { json, secret: arguments.include_secret })
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
