//! Many streams at once through the API server, virt-api and virt-handler, to one guest.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::stream::{FuturesUnordered, StreamExt, TryStreamExt, iter};
use kube::client::Body;
use kubevirt_streams::{Offer, Stream, Upgraded};
use test_kit::Test;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::datagrams;
use crate::machines::guest::{Guest, PATIENCE};

/// So many want the console at once.
const VIEWERS: usize = 40;
/// So many ports are forwarded at once.
const PORTS: usize = 200;
/// So many connect at a time: the guest's small server lets no more wait.
const CONNECTING: usize = 8;
/// How much goes through each of them, and back.
const LENGTH: usize = 10_000;

/// Opens a stream to an instance.
async fn open(test: &Test, name: &str, what: &str) -> Result<Stream<Upgraded>> {
    let namespace = test.namespace();
    let path = format!(
        "/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances/{name}/{what}"
    );
    let mut request = http::Request::get(path).body(Body::empty())?;
    let offer = Offer::add_to(request.headers_mut());
    let response = test.client().send(request).await?;
    ensure!(response.status() == 101, "{what}: {}", response.status());
    Ok(offer.stream(response).await?)
}

/// What a viewer is told when it ends.
async fn farewell(mut viewer: Stream<Upgraded>) -> Result<String> {
    viewer.read_to_end(&mut Vec::new()).await?;
    Ok(viewer.farewell().unwrap_or_default().to_owned())
}

/// Dozens of viewers want the console at once: each but the last hears that another has it, and the last one types.
pub async fn the_console_changes_hands(test: &Test, name: &str) -> Result<()> {
    let opening = (0..VIEWERS).map(|_| open(test, name, "console")).collect::<FuturesUnordered<_>>();
    let viewers: Vec<_> = timeout(PATIENCE, opening.try_collect()).await.context("open")??;
    let mut ends: FuturesUnordered<_> = viewers.into_iter().map(farewell).collect();
    for number in 1..=VIEWERS {
        let mut newcomer = None;
        if number == VIEWERS {
            // All others are gone; nobody but a newcomer disturbs the one who is left.
            ensure!(timeout(Duration::from_secs(2), ends.next()).await.is_err(), "nobody has the console");
            newcomer = Some(open(test, name, "console").await?);
        }
        let end = timeout(PATIENCE, ends.next()).await.with_context(|| format!("viewer {number} stays"))?;
        let why = end.context("no viewer is left")??;
        ensure!(why.contains("another viewer"), "a viewer is told {why:?}");
        if let Some(newcomer) = newcomer {
            prompts(newcomer).await.context("the last viewer")?;
        }
    }
    Ok(())
}

/// Presses Enter until there is a prompt.
async fn prompts(mut viewer: Stream<Upgraded>) -> Result<()> {
    let (mut seen, mut piece, began) = (Vec::new(), [0; 1024], Instant::now());
    while !String::from_utf8_lossy(&seen).contains("login:") {
        ensure!(began.elapsed() < PATIENCE, "no prompt: {:?}", String::from_utf8_lossy(&seen));
        viewer.write_all(b"\r").await?;
        viewer.flush().await?;
        while let Ok(length) = timeout(Duration::from_secs(2), viewer.read(&mut piece)).await {
            let length = length?;
            ensure!(length > 0, "the console ended: {:?}", viewer.farewell());
            seen.extend_from_slice(&piece[..length]);
        }
    }
    Ok(())
}

/// Two hundred connections to a port of the guest are open at once, and each carries its own bytes both ways.
pub async fn ports_are_forwarded_at_once(test: &Test, name: &str, guest: &Guest<'_>) -> Result<()> {
    datagrams::are_echoed(test, guest, name)?;
    let what = format!("portforward/{}/tcp", datagrams::PORT);
    let began = Instant::now();
    while open(test, name, &what).await.is_err() {
        ensure!(began.elapsed() < PATIENCE, "the guest does not listen");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let opening = iter(0..PORTS).map(|_| open(test, name, &what)).buffer_unordered(CONNECTING);
    let streams: Vec<_> = timeout(PATIENCE, opening.try_collect()).await.context("open")??;
    let carrying = streams.into_iter().enumerate().map(async |(number, mut stream)| {
        let sent: Vec<u8> = (0..LENGTH).map(|at| ((at + number * 31) % 251) as u8).collect();
        stream.write_all(&sent).await?;
        stream.flush().await?;
        let mut back = vec![0; LENGTH];
        stream.read_exact(&mut back).await.with_context(|| format!("stream {number}"))?;
        ensure!(back == sent, "stream {number} carries something else");
        anyhow::Ok(stream)
    });
    let carrying = carrying.collect::<FuturesUnordered<_>>().try_collect::<Vec<_>>();
    timeout(PATIENCE, carrying).await.context("carry")??;
    Ok(())
}
