//! From an export to a file.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::Secret;
use kubevirt_api::export::{ExportManifestType, VirtualMachineExport};

use super::export::{New, TOKEN};
use super::forward::Forward;
use super::links::{self, Readiness};
use crate::connect::Session;
use crate::failure::Failure;
use crate::output::{self, note, say};
use crate::transfer::download::{Ask, download};
use crate::transfer::progress::Progress;
use crate::transfer::sink::Sink;
use crate::transfer::{Client, Trust};
use crate::wait;

/// The header with an export's token.
const TOKEN_HEADER: &str = "x-kubevirt-export-token";
/// How long to wait before another attempt.
const PAUSE: Duration = Duration::from_secs(2);
/// How long a server may be silent.
const SILENCE: Duration = Duration::from_secs(120);

/// What is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A disk.
    Volume {
        /// Its name, which is needed if there are several.
        name: Option<String>,
        /// How it is wanted.
        format: Format,
    },
    /// All disks in one archive.
    Oci,
    /// The objects that make the machine elsewhere.
    Manifest {
        /// As JSON instead of YAML.
        json: bool,
        /// With the secret that opens the disks.
        secret: bool,
    },
}

/// How a disk is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Packed, or as it is if there is no other way.
    Default,
    /// Packed.
    Gzip,
    /// Unpacked.
    Raw,
}

/// The way to the export's server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Its address outside of the cluster.
    External,
    /// A host and port that the user knows.
    Service(String),
    /// Through the API server, and a port of this machine.
    Forward(u16),
}

/// Where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A file.
    File(PathBuf),
    /// Standard output: nothing else may be written there.
    Stdout,
}

/// What becomes of the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It stays.
    Keep,
    /// It goes.
    Delete,
    /// It goes if it was made for this download.
    DeleteOwn,
}

/// A download.
#[derive(Clone, Debug, PartialEq)]
pub struct Download {
    /// The name of the export.
    pub name: String,
    /// The export to make, if there is none.
    pub new: Option<New>,
    /// What is fetched.
    pub what: What,
    /// Where it goes.
    pub output: Output,
    /// The way there.
    pub route: Route,
    /// Whether certificates are ignored.
    pub insecure: bool,
    /// How often a refusal is not taken for an answer.
    pub retries: u32,
    /// How long the export may take to be ready.
    pub readiness: Duration,
    /// What becomes of the export.
    pub after: After,
}

impl Download {
    /// Makes the export if need be, fetches from it and cleans up.
    pub async fn run(&self, session: &Session) -> Result<()> {
        let mut made = false;
        if let Some(new) = &self.new {
            made = super::create(session, new).await?;
            let exists =
                || format!("VirtualMachineExport '{}/{}' already exists", session.namespace, self.name);
            self.tell(&if made { super::created(session, &self.name) } else { exists() });
        }
        let result = self.fetch(session).await;
        if self.deletes(made) {
            match super::delete(session, &self.name).await {
                Ok(words) => self.tell(&words),
                Err(error) if result.is_ok() => return Err(error),
                Err(error) => self.tell(&format!("{error:#}")),
            }
        }
        result
    }

    /// Manifests are of no use without the export that they refer to.
    fn deletes(&self, made: bool) -> bool {
        match self.after {
            After::Keep => false,
            After::Delete => true,
            After::DeleteOwn => made && !matches!(self.what, What::Manifest { .. }),
        }
    }

    fn tell(&self, words: &str) {
        match self.output {
            Output::File(_) => say!("{words}"),
            Output::Stdout => note!("{words}"),
        }
    }

    async fn fetch(&self, session: &Session) -> Result<()> {
        let export = self.ready(session).await?;
        let forward = match self.route {
            Route::Forward(port) => Some(Forward::start(session, &export, port).await?),
            _ => None,
        };
        if let Some(forward) = &forward {
            self.tell(&format!("Port forwarding is ready at {}.", forward.address));
        }
        let trust = match links::on(&export, &self.route).map(|links| links.cert.clone()) {
            _ if self.insecure => Trust::Anyone,
            Some(pem) if !pem.trim().is_empty() => Trust::Authorities(pem),
            _ => Trust::System,
        };
        let client = Client::new(&trust)?;
        let client = forward.iter().fold(client, |client, forward| client.via(forward.address));
        let headers = self.headers(session, &export).await?;
        match &self.what {
            What::Manifest { json, secret } => {
                self.manifests(&client, &export, headers, *json, *secret).await
            }
            What::Oci => {
                let kind = &export.spec.source.kind;
                if !["VirtualMachine", "VirtualMachineSnapshot", "VirtualMachineTemplate"]
                    .contains(&kind.as_str())
                {
                    bail!("OCI export is not supported for \"{kind}\" sources");
                }
                let url = links::manifest(&export, &self.route, &ExportManifestType::Oci)?;
                self.file(&client, &url, headers, false).await
            }
            What::Volume { name, format } => {
                let (url, packed) = links::volume(&export, &self.route, name.as_deref(), *format)?;
                self.file(&client, &url, headers, packed && *format == Format::Raw).await
            }
        }
    }

    /// The export, once it can be downloaded from.
    async fn ready(&self, session: &Session) -> Result<VirtualMachineExport> {
        let exports = &session.api::<VirtualMachineExport>(None);
        let told = &std::cell::RefCell::new(String::new());
        let ready = wait::until(self.readiness, || async move {
            let export = exports.get_opt(&self.name).await.context("the export cannot be read")?;
            let words = match export.as_ref().map(|export| links::readiness(export, &self.route)) {
                Some(Readiness::Ready) => return Ok(export),
                Some(Readiness::Never(why)) => bail!("VM Export {} cannot be downloaded: {why}", self.name),
                Some(Readiness::Waiting(words)) => words,
                None if self.new.is_none() => bail!(
                    "unable to get '{}/{}' VirtualMachineExport; --vm, --snapshot, --pvc or --vmtemplate makes one",
                    session.namespace,
                    self.name
                ),
                None => format!("couldn't get VM Export {}, waiting for it to be created...", self.name),
            };
            // The same words again tell nobody anything.
            if *told.borrow() != words {
                self.tell(&words);
                *told.borrow_mut() = words;
            }
            Ok(None)
        });
        match ready.await? {
            Some(export) => Ok(export),
            None => Err(self.late(exports).await.into()),
        }
    }

    async fn late(&self, exports: &kube::Api<VirtualMachineExport>) -> Failure {
        let export = exports.get_opt(&self.name).await.ok().flatten();
        let why = export.as_ref().and_then(links::why).map(|why| format!(": {why}")).unwrap_or_default();
        let what =
            format!("VM Export {} is not ready after {} seconds{why}", self.name, self.readiness.as_secs());
        let next = match (&export.and_then(|export| export.status), &self.route) {
            (None, _) => {
                "Nobody in the cluster looks after exports: the feature gate VMExport must be on, and the version of \
                 KubeVirt must have an export controller."
                    .to_owned()
            }
            (Some(status), Route::External) if status.links.as_ref().is_some_and(|links| links.internal.is_some()) => {
                "The cluster has no external address for exports: add --port-forward.".to_owned()
            }
            _ => format!("See `kubectl describe vmexport {}`; --readiness-timeout waits longer.", self.name),
        };
        Failure::new(what, next)
    }

    async fn headers(&self, session: &Session, export: &VirtualMachineExport) -> Result<HeaderMap> {
        let secret = export.status.as_ref().and_then(|status| status.token_secret_ref.clone());
        let secret = secret.or_else(|| export.spec.token_secret_ref.clone()).unwrap_or_default();
        let secret =
            session.api::<Secret>(None).get(&secret).await.context("the export's token cannot be read")?;
        let token = secret.data.as_ref().and_then(|data| data.get(TOKEN)).map(|token| token.0.as_slice());
        let mut value =
            HeaderValue::from_bytes(token.unwrap_or_default()).context("the export's token is broken")?;
        value.set_sensitive(true);
        Ok(HeaderMap::from_iter([(http::HeaderName::from_static(TOKEN_HEADER), value)]))
    }

    async fn manifests(
        &self,
        client: &Client,
        export: &VirtualMachineExport,
        mut headers: HeaderMap,
        json: bool,
        secret: bool,
    ) -> Result<()> {
        let accept = if json { "application/json" } else { "application/yaml" };
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        let mut wanted = vec![ExportManifestType::All];
        wanted.extend(secret.then_some(ExportManifestType::AuthHeaderSecret));
        let mut text = Vec::new();
        for kind in wanted {
            let url = links::manifest(export, &self.route, &kind)?;
            text.extend(self.text(client, &address(&url)?, &headers).await?);
        }
        match &self.output {
            Output::Stdout => output::bytes(&text),
            Output::File(path) => {
                let written = File::create(path).and_then(|mut file| file.write_all(&text));
                written.with_context(|| format!("{} cannot be written", path.display()))
            }
        }
    }

    /// A small answer as a whole.
    async fn text(&self, client: &Client, url: &Uri, headers: &HeaderMap) -> Result<Vec<u8>> {
        let mut attempt = 0;
        loop {
            let response = client.ask(Method::GET, url, headers).await?;
            let status = response.status();
            if status == StatusCode::OK {
                return Ok(response.into_body().collect().await?.to_bytes().to_vec());
            }
            if attempt == self.retries {
                bail!("Bad status: {status}: retry count reached, exiting unsuccessfully");
            }
            attempt += 1;
            self.tell(&format!("Bad status: {status}. Retrying..."));
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn file(&self, client: &Client, url: &str, headers: HeaderMap, unpack: bool) -> Result<()> {
        let (sink, name) = match &self.output {
            Output::Stdout => (Sink::stdout(unpack), "standard output".to_owned()),
            Output::File(path) => {
                let file =
                    File::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
                (Sink::file(file, unpack), path.display().to_string())
            }
        };
        if unpack {
            self.tell("Decompressing image:");
        }
        let ask = Ask { uri: address(url)?, headers, retries: self.retries, pause: PAUSE, silence: SILENCE };
        let mut progress = Progress::new("Downloading file:", None);
        let fetched = download(client, &ask, sink, &mut progress).await;
        progress.finish();
        let (written, vouched) = fetched?;
        self.tell("Download finished successfully");
        let vouched = if vouched { ", as the server says" } else { "" };
        self.tell(&format!("SHA-256 of {name} ({} bytes): {}{vouched}", written.bytes, written.checksum));
        Ok(())
    }
}

fn address(url: &str) -> Result<Uri> {
    url.parse().with_context(|| format!("{url} is not an address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_goes_unless_it_is_needed() {
        let volume = What::Volume { name: None, format: Format::Default };
        let manifest = What::Manifest { json: false, secret: false };
        for (what, after, made, expected) in [
            (&volume, After::DeleteOwn, true, true),
            (&volume, After::DeleteOwn, false, false),
            (&volume, After::Keep, true, false),
            (&volume, After::Delete, false, true),
            (&manifest, After::DeleteOwn, true, false),
            (&manifest, After::Delete, true, true),
        ] {
            let download = Download {
                name: "e".into(),
                new: None,
                what: what.clone(),
                output: Output::Stdout,
                route: Route::External,
                insecure: false,
                retries: 0,
                readiness: Duration::ZERO,
                after,
            };
            assert_eq!(download.deletes(made), expected, "{what:?} {after:?} {made}");
        }
    }
}
