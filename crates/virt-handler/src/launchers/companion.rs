//! The companion of one launcher, from before its socket is there until it is gone.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use kubevirt_launcher_rpc::connect::{Closed, ConnectError};
use rustix::io::Errno;
use tokio::net::UnixListener;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::arrival::News;
use super::client::{CommandError, Launcher};
use super::ear::Ear;
use super::folders::{Opened, is_misleading};
use super::{Contact, Loss, Shared};
use crate::domains::{Owner, TellError, has_ended};

/// The pause before a launcher is called again that was there and did not take the call.
const PAUSE: Duration = Duration::from_millis(200);

/// The pause before we try again what we could not do ourselves.
const REST: Duration = Duration::from_secs(5);

/// The pause before we try to listen again.
const DEAF: Duration = Duration::from_secs(5);

/// How often a launcher is asked in vain before it counts as silent. On a host that stood still for a while, much time
/// passes between two questions, and that is no fault of the launcher.
const QUESTIONS: u32 = 3;

/// Stays with a launcher until it is gone for good.
pub(super) async fn accompany(shared: Arc<Shared>, owner: Owner) {
    let loss = stay(&shared, &owner).await;
    let ended = shared.domains.of(&owner.uid).is_some_and(|report| has_ended(&report));
    if ended {
        tracing::info!(vmi = %owner.key, "a launcher has left after its machine ended");
    } else {
        tracing::warn!(vmi = %owner.key, pod = owner.pod, %loss, "a launcher is lost");
    }
    shared.set_contact(&owner, Contact::Lost(loss));
}

async fn stay(shared: &Arc<Shared>, owner: &Owner) -> Loss {
    let first = match arrival(shared, owner).await {
        Ok(socket) => socket,
        Err(loss) => return loss,
    };
    // Before we call, so that all that is told after that is heard.
    let _ear = listen(shared, owner);
    let (mut launcher, mut closed) = match reach(shared, owner, Some(first)).await {
        Ok(reached) => reached,
        Err(loss) => return loss,
    };
    loop {
        shared.set_contact(owner, Contact::Connected(launcher.clone()));
        if let Err(loss) = watch(shared, &launcher, closed).await {
            return loss;
        }
        // The connection may have broken while the launcher lives.
        (launcher, closed) = match reach(shared, owner, None).await {
            Ok(reached) => reached,
            Err(loss) => return loss,
        };
    }
}

/// What is found where the socket of a launcher should be.
enum Found {
    Socket(Opened),
    /// It is not there.
    Nothing,
    /// There will never be one.
    Lost(Loss),
    /// We cannot look: what may pass, and is no fault of the launcher.
    Unseen(io::Error),
}

/// Looks for the socket of the launcher.
fn look(shared: &Shared, owner: &Owner) -> Found {
    let Some(pod) = shared.folders.pod(&owner.pod) else {
        return Found::Lost(Loss::Strange(format!("{:?} is no UID of a pod", owner.pod)));
    };
    // A pod that is gone takes its folder along; one that comes has it first.
    match std::fs::metadata(pod) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Found::Lost(Loss::Ended),
        Err(error) => Found::Unseen(error),
        Ok(_) => found(shared.folders.socket(&owner.pod)),
    }
}

fn found(opened: io::Result<Option<Opened>>) -> Found {
    match opened {
        Ok(Some(socket)) => Found::Socket(socket),
        Ok(None) => Found::Nothing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Found::Nothing,
        Err(error) if is_misleading(&error) => Found::Lost(Loss::Strange(error.to_string())),
        Err(error) => Found::Unseen(error),
    }
}

/// Waits for the socket of the launcher. The time in which we could not look does not count.
async fn arrival(shared: &Shared, owner: &Owner) -> Result<Opened, Loss> {
    let patience = shared.settings.patience;
    let sockets = shared.folders.sockets(&owner.pod).unwrap_or_default();
    let mut began = Instant::now();
    loop {
        let mut news = News::of(&sockets);
        match look(shared, owner) {
            Found::Socket(socket) => return Ok(socket),
            Found::Lost(loss) => return Err(loss),
            Found::Nothing => {
                if timeout_at(began + patience, news.next()).await.is_err() {
                    return Err(Loss::NeverReady(patience));
                }
            }
            Found::Unseen(error) => {
                rest(owner, &error).await;
                began = Instant::now();
            }
        }
    }
}

/// Begins to listen in the pod. Where that is not possible it is tried again: a launcher that cannot tell us anything
/// can still be asked.
fn listen(shared: &Arc<Shared>, owner: &Owner) -> AbortOnDropHandle<()> {
    let (shared, pod) = (shared.clone(), owner.pod.clone());
    let (domains, queue, notices) = (shared.domains.clone(), shared.queue.clone(), shared.notices.clone());
    let ear = Ear::new(owner.clone(), domains, queue, notices);
    let open = move || shared.folders.listen(&pod);
    let mut opened = open();
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            hear(ear.clone(), opened).await;
            sleep(DEAF).await;
            opened = open();
        }
    }))
}

/// Hears what the launcher tells, as long as that works.
async fn hear(ear: Ear, opened: io::Result<UnixListener>) {
    let vmi = ear.owner.key.clone();
    match opened {
        Err(error) => tracing::warn!(%vmi, pod = ear.owner.pod, %error, "cannot listen in a pod"),
        Ok(listener) => {
            let ended = ear.listen(listener).await;
            tracing::warn!(%vmi, ?ended, "a launcher is no longer heard");
        }
    }
}

/// Connects, and learns of the domain that is there. Only a launcher that is there and silent is waited for; the time
/// in which we could not ask does not count.
async fn reach(
    shared: &Shared,
    owner: &Owner,
    mut socket: Option<Opened>,
) -> Result<(Launcher, Closed), Loss> {
    let mut began = Instant::now();
    loop {
        let opened = match socket.take().map_or_else(|| look(shared, owner), Found::Socket) {
            Found::Socket(opened) => opened,
            Found::Nothing => return Err(Loss::Ended),
            Found::Lost(loss) => return Err(loss),
            Found::Unseen(error) => {
                rest(owner, &error).await;
                began = Instant::now();
                continue;
            }
        };
        match call(shared, owner, &opened).await {
            Ok(reached) => return Ok(reached),
            // Nobody listens at a socket whose process has ended.
            Err(error) if is_refused(&error) => return Err(Loss::Ended),
            Err(Unreached::Connect(ConnectError::Version(error))) => {
                return Err(Loss::Strange(error.to_string()));
            }
            Err(error) if is_our_own(&error) => {
                rest(owner, &error).await;
                began = Instant::now();
            }
            Err(error) => tracing::debug!(vmi = %owner.key, %error, "a launcher does not answer"),
        }
        if began.elapsed() >= shared.settings.watchdog {
            return Err(Loss::Silent(shared.settings.watchdog));
        }
        sleep(PAUSE).await;
    }
}

/// Why a launcher was not reached.
#[derive(Debug, thiserror::Error)]
enum Unreached {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("it does not tell its domain: {0}")]
    Ask(#[from] CommandError),
    #[error("what it tells is not taken in: {0}")]
    Tell(#[from] TellError),
}

/// Connects, and learns of the domain that is there, if there is one.
async fn call(shared: &Shared, owner: &Owner, socket: &Opened) -> Result<(Launcher, Closed), Unreached> {
    let (launcher, closed) = Launcher::connect(&socket.path()).await?;
    if let Some(report) = launcher.domain().await? {
        shared.domains.tell(owner, report)?;
    }
    Ok((launcher, closed))
}

/// Whether there is nobody who could take a call, as opposed to somebody who is slow to.
fn is_refused(error: &Unreached) -> bool {
    let refusals = [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound];
    matches!(error, Unreached::Connect(_)) && said(error).any(|error| refusals.contains(&error.kind()))
}

/// Whether this process or this node has no more to give, which no launcher can help.
fn is_our_own(error: &Unreached) -> bool {
    let lacks = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS].map(Errno::raw_os_error);
    let lacking = |error: &io::Error| error.raw_os_error().is_some_and(|code| lacks.contains(&code));
    matches!(error, Unreached::Tell(TellError::Record(_))) || said(error).any(lacking)
}

/// What the system said.
fn said<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a io::Error> {
    std::iter::successors(Some(error), |error| (*error).source()).filter_map(|cause| cause.downcast_ref())
}

/// Waits until troubles of our own may have passed.
async fn rest(owner: &Owner, error: &(dyn Error + Sync)) {
    tracing::warn!(vmi = %owner.key, pod = owner.pod, %error, "cannot look after a launcher just now");
    sleep(REST).await;
}

/// Asks a launcher now and then whether it is there, until the connection ends or it is silent for too long.
async fn watch(shared: &Shared, launcher: &Launcher, mut closed: Closed) -> Result<(), Loss> {
    let watchdog = shared.settings.watchdog;
    let (mut heard, mut in_vain) = (Instant::now(), 0);
    loop {
        tokio::select! {
            _ = &mut closed => return Ok(()),
            () = sleep(watchdog / QUESTIONS) => {}
        }
        if launcher.is_there().await {
            (heard, in_vain) = (Instant::now(), 0);
            continue;
        }
        in_vain += 1;
        if in_vain >= QUESTIONS && heard.elapsed() >= watchdog {
            return Err(Loss::Silent(watchdog));
        }
    }
}

#[cfg(test)]
#[path = "companion_tests.rs"]
mod tests;
