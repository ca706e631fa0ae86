//! Asks all launchers at once what they measured, and waits for none of them too long.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::guest_agent::GuestFilesystemList;
use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_launcher_rpc::cmd::EmptyRequest;
use kubevirt_launcher_rpc::cmd::cmd_client::CmdClient;
use kubevirt_launcher_rpc::connect::{self, ConnectError};
use kubevirt_launcher_rpc::stats::DomainStats;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::transport::Channel;
use tracing::debug;

use super::collect::Measured;

/// How long a launcher may take. Prometheus gives up on the whole after about as long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lets so many ask at once.
#[derive(Clone, Debug)]
pub struct Scraper {
    places: Arc<Semaphore>,
    patience: Duration,
}

/// The right to ask, for as long as it is held.
#[derive(Debug)]
pub struct Turn {
    _place: OwnedSemaphorePermit,
    patience: Duration,
}

impl Scraper {
    /// Lets at most so many ask at once.
    pub fn new(max_requests: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(max_requests)), patience: PATIENCE }
    }

    /// Gives each launcher this long.
    pub fn patient(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// A turn, or none if too many ask already: then the answer is that the service is busy.
    pub fn turn(&self) -> Option<Turn> {
        let place = self.places.clone().try_acquire_owned().ok()?;
        Some(Turn { _place: place, patience: self.patience })
    }
}

impl Turn {
    /// Asks the launchers of these instances through their sockets; who does not answer in time is left out.
    pub async fn scrape(&self, launchers: Vec<(Arc<VirtualMachineInstance>, PathBuf)>) -> Vec<Measured> {
        let asked = launchers.into_iter().map(async |(vmi, socket)| {
            let answer = tokio::time::timeout(self.patience, ask(vmi, &socket)).await;
            match answer {
                Ok(Ok(measured)) => measured,
                Ok(Err(error)) => {
                    debug!(socket = %socket.display(), "a launcher told no measurements: {error}");
                    None
                }
                Err(_) => {
                    debug!(socket = %socket.display(), "a launcher took too long to tell its measurements");
                    None
                }
            }
        });
        futures_util::future::join_all(asked).await.into_iter().flatten().collect()
    }
}

/// Why a launcher told nothing.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It does not answer.
    #[error(transparent)]
    Refused(#[from] Box<tonic::Status>),
    /// It says something else.
    #[error("cannot understand its answer: {0}")]
    Text(#[from] serde_json::Error),
}

/// What a launcher measures of its machine; nothing if there is no machine yet, or no longer.
pub async fn stats(launcher: &mut CmdClient<Channel>) -> Result<Option<DomainStats>, AskError> {
    let answer = launcher.get_domain_stats(EmptyRequest {}).await.map_err(Box::new)?.into_inner();
    if answer.domain_stats.is_empty() {
        return Ok(None);
    }
    let stats: DomainStats = serde_json::from_str(&answer.domain_stats)?;
    Ok(Some(stats).filter(|stats| !stats.name.is_empty()))
}

async fn ask(vmi: Arc<VirtualMachineInstance>, socket: &Path) -> Result<Option<Measured>, AskError> {
    let launcher = connect::launcher(socket).await?;
    let (mut one, mut two, mut three) = (launcher.clone(), launcher.clone(), launcher);
    let rate = async {
        // A guest that is paused writes nothing, and during a migration QEMU cannot measure this as well.
        if !can_measure_dirty_rate(&vmi) {
            return None;
        }
        let answer = three.get_domain_dirty_rate_stats(EmptyRequest {}).await.ok()?.into_inner();
        answer.response.is_some_and(|response| response.success).then_some(answer.dirty_rate_mbs)
    };
    let (stats, filesystems, dirty_rate) =
        tokio::join!(stats(&mut one), two.get_filesystems(EmptyRequest {}), rate);
    let Some(stats) = stats? else { return Ok(None) };
    // Without an agent in the guest nothing is known of its file systems.
    let text = filesystems.map(|answer| answer.into_inner().guest_filesystems_response).unwrap_or_default();
    let filesystems: GuestFilesystemList = serde_json::from_str(&text).unwrap_or_default();
    Ok(Some(Measured { vmi, stats, filesystems: filesystems.items, dirty_rate }))
}

fn can_measure_dirty_rate(vmi: &VirtualMachineInstance) -> bool {
    let Some(status) = &vmi.status else { return false };
    let moving = status.migration_state.as_ref().is_some_and(|migration| {
        migration.start_timestamp.is_some()
            && migration.completed != Some(true)
            && migration.failed != Some(true)
    });
    status.phase == Some(VmiPhase::Running) && !moving
}
