//! Calling the launcher that the machine goes to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kubevirt_launcher_rpc::connect::{self, ConnectError};
use kubevirt_launcher_rpc::target::target_client::TargetClient;
use kubevirt_launcher_rpc::target::{Answer, MigrationRef, ReceiveRequest, TakeOverRequest};
use tokio::time::{Instant, sleep, timeout};
use tonic::transport::Channel;

/// How long the target may take to start its QEMU.
const START: Duration = Duration::from_secs(120);
/// How long the last of the state may take to be read once it was sent.
const ARRIVE: Duration = Duration::from_secs(60);
/// How long any other answer may take.
const ANSWER: Duration = Duration::from_secs(10);
/// How long to ask again whether the machine was taken over.
const INSIST: Duration = Duration::from_secs(60);
/// The pause between two such questions.
const PAUSE: Duration = Duration::from_millis(500);

/// Why the target did not do as it was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    /// Nobody listens.
    #[error("the target cannot be reached: {0}")]
    Unreachable(#[from] ConnectError),
    /// It said no.
    #[error("the target refuses: {0}")]
    Refused(String),
    /// Whether it did is not known.
    #[error("the target does not answer: {0}")]
    Silent(String),
}

/// A target, for one migration.
pub(super) struct Link {
    socket: PathBuf,
    migration: String,
    client: TargetClient<Channel>,
}

impl Link {
    pub(super) async fn open(socket: &Path, migration: &str) -> Result<Self, LinkError> {
        let client = connect::target(socket).await?;
        Ok(Self { socket: socket.to_owned(), migration: migration.to_owned(), client })
    }

    /// Has the target start a QEMU that listens.
    pub(super) async fn receive(&mut self, request: ReceiveRequest) -> Result<(), LinkError> {
        done(timeout(START, self.client.receive(request)).await)
    }

    /// Waits until the target has all that the guest needs to run.
    pub(super) async fn confirm(&mut self) -> Result<(), LinkError> {
        let request = MigrationRef { migration: self.migration.clone() };
        done(timeout(ARRIVE, self.client.confirm(request)).await)
    }

    /// Hands the machine over. [`LinkError::Silent`] means that it may or may not be there.
    pub(super) async fn take_over(&mut self, run: bool, reason: &str) -> Result<(), LinkError> {
        let until = Instant::now() + INSIST;
        let (migration, reason) = (self.migration.clone(), reason.to_owned());
        let request = TakeOverRequest { migration, run, reason };
        loop {
            let silent = match done(timeout(ANSWER, self.client.take_over(request.clone())).await) {
                Err(LinkError::Silent(why)) => why,
                outcome => return outcome,
            };
            tracing::warn!(%silent, "it is not known whether the target has taken over, asking again");
            self.reconnect(until).await.map_err(|_| LinkError::Silent(silent))?;
        }
    }

    /// Has the target listen anew for the rest of the memory.
    pub(super) async fn recover(&mut self) -> Result<(), LinkError> {
        // What broke the connection of the memory broke this one too, more often than not.
        self.client = connect::target(&self.socket).await?;
        let request = MigrationRef { migration: self.migration.clone() };
        done(timeout(ANSWER, self.client.recover(request)).await)
    }

    /// Tells the target that the machine stays.
    pub(super) async fn abandon(&mut self) -> Result<(), LinkError> {
        let request = MigrationRef { migration: self.migration.clone() };
        match done(timeout(ANSWER, self.client.abandon(request.clone())).await) {
            Err(LinkError::Silent(_)) => {
                // That connection may be why the machine stays.
                self.reconnect(Instant::now()).await?;
                done(timeout(ANSWER, self.client.abandon(request)).await)
            }
            outcome => outcome,
        }
    }

    async fn reconnect(&mut self, until: Instant) -> Result<(), ConnectError> {
        loop {
            sleep(PAUSE).await;
            match connect::target(&self.socket).await {
                Ok(client) => {
                    self.client = client;
                    return Ok(());
                }
                Err(error) if Instant::now() >= until => return Err(error),
                Err(_) => {}
            }
        }
    }
}

type Call = Result<Result<tonic::Response<Answer>, tonic::Status>, tokio::time::error::Elapsed>;

fn done(call: Call) -> Result<(), LinkError> {
    let answer = call.map_err(|_| LinkError::Silent("it takes too long".into()))?;
    let answer = answer.map_err(|status| LinkError::Silent(status.message().to_owned()))?.into_inner();
    if answer.done { Ok(()) } else { Err(LinkError::Refused(answer.refusal)) }
}
