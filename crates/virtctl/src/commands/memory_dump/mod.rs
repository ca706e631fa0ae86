//! `memory-dump`: what is in a guest's memory, on a claim and in a file.

mod claim;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Api;
use kube::api::PostParams;
use kubevirt_api::data_volume::CDIConfig;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::MemoryDumpPhase;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::json;

use super::tell_idle;
use super::vmexport::{self, Download};
use crate::connect::{Connect, Session};
use crate::contention;
use crate::failure::Failure;
use crate::output::say;
use crate::subresource::Kind;
use crate::wait;

/// How long a dump may take.
const DUMP: Duration = Duration::from_secs(600);
/// How long the export of a dump may take to be ready.
const READINESS: Duration = Duration::from_secs(120);
/// The name of the one configuration of the importer.
const CONFIG: &str = "config";

/// Dump the memory of a running virtual machine to a claim.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What to do: get, download or remove
    #[arg(value_name = "ACTION")]
    action: String,
    /// The virtual machine
    #[arg(value_name = "VM")]
    vm: String,
    /// Claim for the dump
    #[arg(long, value_name = "CLAIM")]
    claim_name: Option<String>,
    /// Create the claim
    #[arg(long)]
    create_claim: bool,
    /// Storage class of a claim that is created
    #[arg(long, value_name = "CLASS")]
    storage_class: Option<String>,
    /// Access mode of a claim that is created: ReadWriteOnce or ReadWriteMany
    #[arg(long, value_name = "MODE")]
    access_mode: Option<String>,
    /// File to download the dump to
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the download: gzip or raw (unpacked on the way)
    #[arg(long)]
    format: Option<String>,
    /// Download through the cluster's API server
    #[arg(long)]
    port_forward: bool,
    /// Port on this machine for --port-forward; any if 0
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    local_port: u16,
}

const EXAMPLES: &str = "  # Dump the memory to a claim that is there, or to a new one
  {program} memory-dump get myvm --claim-name memory
  {program} memory-dump get myvm --claim-name memory --create-claim

  # Dump it to the same claim again, and download it
  {program} memory-dump get myvm --output dump.gz

  # Download the last dump
  {program} memory-dump download myvm --output dump.gz

  # Let go of the claim, so that another one can be used
  {program} memory-dump remove myvm";

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Get,
    Download,
    Remove,
}

impl Arguments {
    /// Does what is asked with the dump.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let action = self.check()?;
        tell_idle(&self.idle(action), &format!("on `memory-dump {}` as it is asked for", self.action));
        let session = connect.session().await?;
        match action {
            Action::Get => self.get(session).await?,
            Action::Download => self.download(session).await?,
            Action::Remove => self.remove(session).await?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The action, if there is all that it needs.
    fn check(&self) -> Result<Action> {
        let action = match self.action.as_str() {
            "get" => Action::Get,
            "download" => Action::Download,
            "remove" => Action::Remove,
            other => bail!("invalid action type {other}; use get, download or remove"),
        };
        if action == Action::Get
            && self.create_claim
            && self.claim_name.as_deref().unwrap_or_default().is_empty()
        {
            bail!("missing claim name: --create-claim needs --claim-name");
        }
        if action == Action::Download && self.output.is_none() {
            bail!("missing outputFile to download the memory dump: add --output");
        }
        self.format()?;
        Ok(action)
    }

    /// The flags that are given for something else.
    fn idle(&self, action: Action) -> Vec<&'static str> {
        let creates = action == Action::Get && self.create_claim;
        let downloads = action != Action::Remove && self.output.is_some();
        let flags = [
            ("--claim-name", self.claim_name.is_some(), action == Action::Get),
            ("--create-claim", self.create_claim, creates),
            ("--storage-class", self.storage_class.is_some(), creates),
            ("--access-mode", self.access_mode.is_some(), creates),
            ("--output", self.output.is_some(), downloads),
            ("--format", self.format.is_some(), downloads),
            ("--port-forward", self.port_forward, downloads),
            ("--local-port", self.local_port != 0, downloads && self.port_forward),
        ];
        flags.into_iter().filter(|(_, given, used)| *given && !used).map(|(flag, ..)| flag).collect()
    }

    fn format(&self) -> Result<vmexport::Format> {
        match self.format.as_deref() {
            None | Some("" | "gzip" | "gzipped") => Ok(vmexport::Format::Default),
            Some("raw") => Ok(vmexport::Format::Raw),
            Some(other) => bail!("invalid format {other}: --format takes gzip or raw"),
        }
    }

    async fn get(&self, session: &Session) -> Result<()> {
        if let Some(claim) = self.claim_name.as_deref().filter(|_| self.create_claim) {
            self.create(session, claim).await?;
        }
        let body = json!({ "claimName": self.claim_name.as_deref().unwrap_or_default() });
        let ask = || session.put(Kind::Vm, &session.namespace, &self.vm, "memorydump", Some(&body));
        contention::overcome(ask).await.context("error dumping vm memory")?;
        say!("Successfully submitted memory dump request of VM {}", self.vm);
        if self.output.is_some() { self.download(session).await } else { Ok(()) }
    }

    /// Creates a claim that is large enough.
    async fn create(&self, session: &Session, name: &str) -> Result<()> {
        let vm = session.api::<VirtualMachine>(None).get(&self.vm).await?;
        if vm.status.is_some_and(|status| status.memory_dump_request.is_some()) {
            let what = "please remove current memory dump association before creating a new claim for a new memory dump";
            let next = format!("`virtctl memory-dump remove {}` does that; the claim stays.", self.vm);
            return Err(Failure::new(what, next).into());
        }
        let claims = session.api::<PersistentVolumeClaim>(None);
        let namespace = &session.namespace;
        if claims.get_opt(name).await?.is_some() {
            bail!(
                "PVC {namespace}/{name} already exists, check if it should be created if not remove create flag"
            );
        }
        let vmi = session.api::<VirtualMachineInstance>(None).get(&self.vm).await?;
        let class = self.storage_class.as_deref().filter(|class| !class.is_empty());
        let overhead = overhead(session, class).await?;
        let size = claim::size(&vmi, &overhead)?;
        let claim = claim::claim(name, namespace, size, class, self.access_mode.as_deref())?;
        claims.create(&PostParams::default(), &claim).await.context("the claim cannot be created")?;
        say!("PVC {namespace}/{name} created");
        Ok(())
    }

    async fn download(&self, session: &Session) -> Result<()> {
        let claim = self.wait(session).await?;
        let name = format!("export-{}-{claim}", self.vm);
        let download = Download {
            name: name.clone(),
            new: Some(vmexport::New { name, source: vmexport::claim(&claim), ..Default::default() }),
            what: vmexport::What::Volume { name: None, format: self.format()? },
            output: vmexport::Output::File(self.output.clone().unwrap_or_default()),
            route: if self.port_forward {
                vmexport::Route::Forward(self.local_port)
            } else {
                vmexport::Route::External
            },
            insecure: false,
            // The claim may still be held by the pod that wrote to it.
            retries: 2,
            readiness: READINESS,
            after: vmexport::After::DeleteOwn,
        };
        download.run(session).await
    }

    /// The claim with the dump, once that is complete.
    async fn wait(&self, session: &Session) -> Result<String> {
        let vms = &session.api::<VirtualMachine>(None);
        let told = &std::cell::RefCell::new(None);
        let done = wait::until(DUMP, || async move {
            let vm = vms.get(&self.vm).await?;
            let Some(dump) = vm.status.and_then(|status| status.memory_dump_request) else { return Ok(None) };
            match dump.phase {
                MemoryDumpPhase::Completed => return Ok(Some(dump.claim_name)),
                MemoryDumpPhase::Failed => {
                    let what = format!("the memory dump has failed: {}", dump.message.unwrap_or_default());
                    let next = format!("`virtctl memory-dump get {}` tries again.", self.vm);
                    return Err(Failure::new(what, next).into());
                }
                _ => {}
            }
            if told.borrow().as_ref() != Some(&dump.phase) {
                say!(
                    "Waiting for memorydump {} to complete, current phase: {}...",
                    dump.claim_name,
                    dump.phase
                );
                *told.borrow_mut() = Some(dump.phase);
            }
            Ok(None)
        });
        let Some(claim) = done.await?.filter(|claim| !claim.is_empty()) else {
            let what =
                format!("the memory dump of {} is not complete after {} seconds", self.vm, DUMP.as_secs());
            let next = format!(
                "See `kubectl describe vm {0}`; `virtctl memory-dump download {0}` goes on waiting.",
                self.vm
            );
            return Err(Failure::new(what, next).into());
        };
        say!("Memory dump completed successfully");
        Ok(claim)
    }

    async fn remove(&self, session: &Session) -> Result<()> {
        let ask = || session.put(Kind::Vm, &session.namespace, &self.vm, "removememorydump", None);
        contention::overcome(ask).await.context("error removing memory dump association")?;
        say!("Successfully submitted remove memory dump association of VM {}", self.vm);
        Ok(())
    }
}

/// The share of a file system that is not for files.
async fn overhead(session: &Session, class: Option<&str>) -> Result<String> {
    let configs: Api<CDIConfig> = Api::all(session.client.clone());
    match configs.get_opt(CONFIG).await? {
        Some(config) => claim::overhead(&config, class),
        None => {
            say!("Using default 5.5% filesystem overhead for pvc size");
            Ok(claim::OVERHEAD.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::commands::Command;
    use crate::program::Program;

    fn action(line: &str) -> Result<(Action, String), String> {
        let words = ["virtctl", "memory-dump"].into_iter().chain(line.split_whitespace()).map(OsString::from);
        let cli = crate::parse(&Program::called("virtctl".as_ref()), &words.collect::<Vec<_>>());
        let Command::MemoryDump(arguments) = cli.map_err(|error| error.to_string())?.command else {
            panic!("{line} dumps nothing")
        };
        let action = arguments.check().map_err(|error| error.to_string())?;
        Ok((action, arguments.idle(action).join(" ")))
    }

    #[test]
    fn flags_go_with_their_action() {
        for (line, expected, idle) in [
            ("get vm", Action::Get, ""),
            (
                "get vm --claim-name c --create-claim --storage-class s --access-mode ReadWriteMany",
                Action::Get,
                "",
            ),
            ("get vm --output f --format raw --port-forward --local-port 1", Action::Get, ""),
            ("get vm --claim-name c --storage-class s", Action::Get, "--storage-class"),
            ("get vm --format raw", Action::Get, "--format"),
            ("download vm --output f --format gzip", Action::Download, ""),
            (
                "download vm --output f --claim-name c --create-claim",
                Action::Download,
                "--claim-name --create-claim",
            ),
            ("download vm --output f --local-port 1", Action::Download, "--local-port"),
            ("remove vm", Action::Remove, ""),
            ("remove vm --output f --create-claim", Action::Remove, "--create-claim --output"),
        ] {
            assert_eq!(action(line), Ok((expected, idle.to_owned())), "{line}");
        }
        for (line, problem) in [
            ("put vm", "invalid action type put"),
            ("get", "required arguments were not provided"),
            ("get vm --create-claim", "missing claim name"),
            ("download vm", "missing outputFile"),
            ("download vm --output f --format zip", "invalid format zip"),
        ] {
            let error = action(line).expect_err(line);
            assert!(error.contains(problem), "{line}: {error}");
        }
    }
}
