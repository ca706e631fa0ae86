//! Telling one guest, for as long as its machine is there.

use std::fmt::Display;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use kubevirt_disk_image::write_metrics;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::Wish;
use super::channel::converse;
use super::document::UNKNOWN;
use super::source::{Nothing, Source, blocking};

/// How often the disk is written.
const EVERY: Duration = Duration::from_secs(5);

/// The pause before a channel is tried again, and the longest that it grows to.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Tells a guest what it wishes to know, until it is dropped.
pub async fn serve(source: Source, wish: Wish) {
    tokio::join!(
        async {
            if wish.disk {
                keep_disk(&source).await;
            }
        },
        async {
            if wish.channel {
                keep_channel(&source).await;
            }
        }
    );
}

async fn keep_disk(source: &Source) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut disk, mut log) = (None, Log::new("metrics cannot be put on a guest's disk"));
    loop {
        ticks.tick().await;
        match write(source, &mut disk).await {
            Ok(()) => log.works(),
            Err(error) => {
                log.fails(source, &error);
                // Perhaps it is another one by now.
                disk = None;
            }
        }
    }
}

/// Writes what is known now. The disk stays open, since finding it disturbs the launcher.
async fn write(source: &Source, disk: &mut Option<Arc<File>>) -> Result<(), Nothing> {
    let document = source.document().await?;
    let file = match disk {
        Some(file) => file.clone(),
        None => disk.insert(Arc::new(source.disk().await?)).clone(),
    };
    Ok(blocking(move || write_metrics(&file, &format!("{document}\n"))).await?)
}

async fn keep_channel(source: &Source) {
    let (first, longest) = PAUSES;
    let (mut pause, mut log) = (first, Log::new("a guest's channel for metrics cannot be used"));
    loop {
        match source.channel().await {
            Ok(guest) => {
                log.works();
                pause = first;
                let ended = converse(guest, || answer(source)).await;
                tracing::debug!(vmi = %source.owner().key, ?ended, "a guest's channel for metrics was closed");
            }
            Err(error) => log.fails(source, &error),
        }
        sleep(pause).await;
        pause = longest.min(pause * 2);
    }
}

async fn answer(source: &Source) -> String {
    source.document().await.unwrap_or_else(|error| {
        tracing::debug!(vmi = %source.owner().key, %error, "a guest asked for metrics that are not known");
        UNKNOWN.to_owned()
    })
}

/// Says that something does not work when it ceases to, and not each time that it is tried.
struct Log {
    what: &'static str,
    fails: bool,
}

impl Log {
    fn new(what: &'static str) -> Self {
        Self { what, fails: false }
    }

    fn works(&mut self) {
        self.fails = false;
    }

    fn fails(&mut self, source: &Source, error: &dyn Display) {
        let vmi = &source.owner().key;
        if std::mem::replace(&mut self.fails, true) {
            tracing::debug!(%vmi, %error, "{}", self.what);
        } else {
            tracing::warn!(%vmi, %error, "{}", self.what);
        }
    }
}
