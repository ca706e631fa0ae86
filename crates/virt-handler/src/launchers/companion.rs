//! The companion of one launcher, from before its socket is there until it is gone.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kubevirt_launcher_rpc::connect::{Closed, ConnectError};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::arrival::News;
use super::client::Launcher;
use super::ear::Ear;
use super::folders::Opened;
use super::{Contact, Loss, Shared};
use crate::domains::{Owner, has_ended};

/// The pause before a launcher is called again that was there and did not take the call.
const PAUSE: Duration = Duration::from_millis(200);

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
    let patience = shared.settings.patience;
    let first = match timeout(patience, arrival(shared, owner)).await {
        Ok(Ok(socket)) => socket,
        Ok(Err(loss)) => return loss,
        Err(_) => return Loss::NeverReady(patience),
    };
    let _ear = match listen(shared, owner) {
        Ok(ear) => ear,
        Err(error) => {
            tracing::warn!(vmi = %owner.key, pod = owner.pod, %error, "cannot listen in a pod");
            return Loss::Strange(error.to_string());
        }
    };
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

/// Waits for the socket of the launcher.
async fn arrival(shared: &Shared, owner: &Owner) -> Result<Opened, Loss> {
    let strange = |error: io::Error| Loss::Strange(error.to_string());
    let (Some(pod), Some(sockets)) = (shared.folders.pod(&owner.pod), shared.folders.sockets(&owner.pod))
    else {
        return Err(Loss::Strange(format!("{:?} is no UID of a pod", owner.pod)));
    };
    loop {
        let mut news = News::of(&sockets).map_err(strange)?;
        // A pod that is gone takes its folder along; one that comes has it first.
        if !pod.is_dir() {
            return Err(Loss::Ended);
        }
        match shared.folders.socket(&owner.pod) {
            Ok(Some(socket)) => return Ok(socket),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(strange(error)),
        }
        news.next().await.map_err(strange)?;
    }
}

/// Begins to listen in the pod.
fn listen(shared: &Shared, owner: &Owner) -> io::Result<AbortOnDropHandle<()>> {
    let listener = shared.folders.listen(&owner.pod, shared.settings.user)?;
    let ear = Ear {
        owner: owner.clone(),
        domains: shared.domains.clone(),
        queue: shared.queue.clone(),
        notices: shared.notices.clone(),
    };
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        if let Err(error) = ear.listen(listener).await {
            tracing::warn!(%error, "a launcher is no longer heard");
        }
    })))
}

/// Connects, and learns of the domain that is there. Only a launcher that is there and silent is waited for.
async fn reach(
    shared: &Shared,
    owner: &Owner,
    mut socket: Option<Opened>,
) -> Result<(Launcher, Closed), Loss> {
    let began = Instant::now();
    loop {
        let opened = match socket.take() {
            Some(opened) => Some(opened),
            None => shared.folders.socket(&owner.pod).ok().flatten(),
        };
        let Some(opened) = opened else { return Err(Loss::Ended) };
        match Launcher::connect(&opened.path()).await {
            Ok((launcher, closed)) => match learn(shared, owner, &launcher).await {
                Ok(()) => return Ok((launcher, closed)),
                Err(error) => {
                    tracing::debug!(vmi = %owner.key, %error, "a launcher does not tell its domain");
                }
            },
            // Nobody listens at a socket whose process has ended.
            Err(ConnectError::Unreachable { source, .. }) if is_refused(&source) => return Err(Loss::Ended),
            Err(ConnectError::Version(error)) => return Err(Loss::Strange(error.to_string())),
            Err(error) => tracing::debug!(vmi = %owner.key, %error, "a launcher does not answer"),
        }
        if began.elapsed() >= shared.settings.watchdog {
            return Err(Loss::Silent(shared.settings.watchdog));
        }
        sleep(PAUSE).await;
    }
}

/// Whether there is nobody who could take a call, as opposed to somebody who is slow to.
fn is_refused(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let kinds = causes.filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds.into_iter().any(|kind| matches!(kind, io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound))
}

/// Learns of the domain that is there, if there is one.
async fn learn(shared: &Shared, owner: &Owner, launcher: &Launcher) -> Result<(), String> {
    match launcher.domain().await {
        Ok(Some(report)) => shared.domains.tell(owner, report).map(|_| ()).map_err(|error| error.to_string()),
        Ok(None) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
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
