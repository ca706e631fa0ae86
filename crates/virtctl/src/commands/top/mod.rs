//! `top`: what machines use right now.
//!
//! The numbers are those of the virt-handlers, asked through the API server: that takes the right to `get pods/proxy`
//! where KubeVirt is installed. Whoever has it not gets CPU and memory from the cluster's metrics server, which
//! ordinary viewers of a namespace may ask, and is told what is missing.

mod metrics;
mod source;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::Api;
use kube::api::ListParams;
use kubevirt_api::quantity::Amount;
use kubevirt_api::vmi::VirtualMachineInstance;
use tokio::time::Instant;

use self::metrics::{Key, Usage};
use self::source::Source;
use self::table::{Rates, Row, SortBy};
use crate::connect::{Connect, Session};
use crate::output;

/// How long rates are measured for when the table is printed once.
const GLANCE: Duration = Duration::from_secs(1);
/// Clears the screen and goes to its upper left corner.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Show what virtual machines use: CPU, memory, disk and network.
///
/// The table is drawn anew every few seconds until ctrl+C; where standard output is not a terminal, it is printed once.
/// CPU is in use/given, memory is resident/given.
///
/// Disk and network are known to those who may `get pods/proxy` in the namespace of KubeVirt, since virt-handlers are
/// asked for them. Others see CPU and memory if the cluster has a metrics server.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # The machines of this namespace, live:\n  {program} top

  # Those of all namespaces, once, by memory:\n  {program} top -A --once --sort-by=memory")]
pub struct Arguments {
    /// The machines of all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Print the table once
    #[arg(long)]
    once: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// What to sort by
    #[arg(long, value_name = "COLUMN", value_enum, default_value_t)]
    sort_by: SortBy,
    /// Only machines with these labels, as in app=web
    #[arg(long, short = 'l')]
    selector: Option<String>,
}

/// A look at the cluster.
struct Look {
    machines: Vec<VirtualMachineInstance>,
    usage: BTreeMap<Key, Usage>,
    at: Instant,
}

impl Arguments {
    /// Looks again and again, and shows what has changed.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let session = connect.session().await?;
        let live = !self.once && std::io::stdout().is_terminal();
        let mut source: Option<(Source, Option<String>)> = None;
        let mut before: Option<Look> = None;
        loop {
            let machines = self.machines(session).await?;
            let nodes = nodes(&machines);
            source = match source {
                // Machines move, and others begin.
                Some((Source::Handlers(old), None)) if !old.is_empty() => {
                    Some((source::follow(session, Source::Handlers(old), &nodes).await, None))
                }
                Some(found) if !matches!(found.0, Source::Handlers(_)) => Some(found),
                _ if machines.is_empty() => None,
                _ => Some(source::find(session, &nodes).await?),
            };
            let (from, note) =
                source.as_ref().map_or((&Source::None, None), |(from, note)| (from, note.as_deref()));
            let now = self.look(session, from, machines).await;
            // Rates take two looks; a live table shows the rest until then.
            if live || before.is_some() || now.machines.is_empty() {
                self.show(&now, before.as_ref(), note, live)?;
                if !live {
                    return Ok(ExitCode::SUCCESS);
                }
            }
            before = Some(now);
            tokio::select! {
                () = tokio::time::sleep(if live { Duration::from_secs(self.interval) } else { GLANCE }) => {}
                _ = tokio::signal::ctrl_c() => return Ok(ExitCode::SUCCESS),
            }
        }
    }

    async fn machines(&self, session: &Session) -> Result<Vec<VirtualMachineInstance>> {
        let api = match self.all_namespaces {
            true => Api::all(session.client.clone()),
            false => session.api(None),
        };
        let mut chosen = ListParams::default();
        if let Some(selector) = &self.selector {
            chosen = chosen.labels(selector);
        }
        Ok(api.list(&chosen).await.context("virtual machine instances cannot be listed")?.items)
    }

    async fn look(&self, session: &Session, source: &Source, machines: Vec<VirtualMachineInstance>) -> Look {
        let namespace = (!self.all_namespaces).then_some(session.namespace.as_str());
        let usage = source::look(session, source, namespace, &machines).await;
        Look { machines, usage, at: Instant::now() }
    }

    fn show(&self, now: &Look, before: Option<&Look>, note: Option<&str>, live: bool) -> Result<()> {
        let mut rows: Vec<Row> = now.machines.iter().map(|vmi| row(vmi, now, before)).collect();
        table::sort(&mut rows, self.sort_by);
        let mut lines = table::render(&rows, self.all_namespaces);
        if rows.is_empty() {
            lines = vec!["No virtual machines are running.".to_owned()];
        }
        if let Some(note) = note {
            lines.push(String::new());
            lines.extend(note.lines().map(str::to_owned));
        }
        if live { output::print(&screen(&lines)) } else { output::print(&(lines.join("\n") + "\n")) }
    }
}

/// As much of the lines as the terminal holds.
fn screen(lines: &[String]) -> String {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let (rows, columns) =
        size.filter(|size| size.ws_row > 0).map_or((24, 80), |size| (size.ws_row.into(), size.ws_col.into()));
    CLEAR.to_owned() + &cut(lines, rows, columns)
}

fn cut(lines: &[String], rows: usize, columns: usize) -> String {
    let shown: Vec<String> =
        lines.iter().take(rows.saturating_sub(1)).map(|line| line.chars().take(columns).collect()).collect();
    shown.join("\n") + "\n"
}

fn nodes(machines: &[VirtualMachineInstance]) -> BTreeSet<String> {
    machines
        .iter()
        .filter_map(|vmi| vmi.status.as_ref()?.node_name.clone())
        .filter(|node| !node.is_empty())
        .collect()
}

fn row(vmi: &VirtualMachineInstance, now: &Look, before: Option<&Look>) -> Row {
    let key: Key =
        (vmi.metadata.namespace.clone().unwrap_or_default(), vmi.metadata.name.clone().unwrap_or_default());
    let status = vmi.status.as_ref();
    let rates = now.usage.get(&key).map(|usage| {
        let earlier = before.and_then(|before| before.usage.get(&key));
        let seconds = before.map_or(0.0, |before| now.at.duration_since(before.at).as_secs_f64());
        Rates::between(earlier, usage, seconds)
    });
    Row {
        status: status
            .and_then(|status| status.phase.as_ref())
            .map_or("Pending", |phase| phase.as_str())
            .to_owned(),
        node: status.and_then(|status| status.node_name.clone()).unwrap_or_default(),
        cpus: cpus(vmi),
        memory: memory(vmi),
        rates: rates.unwrap_or_default(),
        namespace: key.0,
        name: key.1,
    }
}

fn cpus(vmi: &VirtualMachineInstance) -> u64 {
    let current = vmi.status.as_ref().and_then(|status| status.current_cpu_topology.as_ref());
    let asked = vmi.spec.domain.cpu.as_ref();
    let parts = match (current, asked) {
        (Some(current), _) => [current.sockets, current.cores, current.threads],
        (None, Some(asked)) => [asked.sockets, asked.cores, asked.threads],
        (None, None) => [None; 3],
    };
    parts.into_iter().map(|part| part.and_then(|part| u64::try_from(part).ok()).unwrap_or(1).max(1)).product()
}

fn memory(vmi: &VirtualMachineInstance) -> Option<u64> {
    let current = vmi.status.as_ref().and_then(|status| status.memory.as_ref()?.guest_current.as_ref());
    let asked = vmi.spec.domain.memory.as_ref().and_then(|memory| memory.guest.as_ref());
    let requested = || {
        vmi.spec.domain.resources.as_ref().and_then(|resources| resources.requests.as_ref()?.get("memory"))
    };
    let amount = Amount::of(current.or(asked).or_else(requested)?).ok()?;
    u64::try_from(amount.value()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_machine_has_what_it_has_now_or_asked_for() {
        let of = |domain: serde_json::Value, status: serde_json::Value| {
            let vmi: VirtualMachineInstance = serde_json::from_value(
                json!({"metadata": {"name": "a"}, "spec": {"domain": domain}, "status": status}),
            )
            .unwrap();
            (cpus(&vmi), memory(&vmi))
        };
        assert_eq!(of(json!({"devices": {}}), json!({})), (1, None));
        let asked = json!({"devices": {}, "cpu": {"sockets": 2, "cores": 3}, "memory": {"guest": "1Gi"}});
        assert_eq!(of(asked.clone(), json!({})), (6, Some(1 << 30)));
        let plugged = json!({"currentCPUTopology": {"sockets": 4, "cores": 3, "threads": 1},
            "memory": {"guestCurrent": "2Gi"}});
        assert_eq!(of(asked, plugged), (12, Some(2 << 30)));
        let requests = json!({"devices": {}, "resources": {"requests": {"memory": "64Mi"}}});
        assert_eq!(of(requests, json!({})), (1, Some(64 << 20)));
    }

    #[test]
    fn a_screen_is_not_overrun() {
        let lines: Vec<String> = ["abcdef", "2", "3"].map(str::to_owned).to_vec();
        assert_eq!(cut(&lines, 3, 4), "abcd\n2\n");
        assert_eq!(cut(&lines, 0, 0), "\n");
    }
}
