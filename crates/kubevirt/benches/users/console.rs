//! A guest's console through virt-handler, and through virt-api before it, next to QEMU's own socket.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use test_kit::Row;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::api::Api;
use crate::door::Door;
use crate::middle_and_worst;
use crate::pod::Pod;

/// All ways are gone so often, one after the other: others work on this machine, too.
const ROUNDS: usize = 5;
/// Keys that are pressed each time.
const KEYS: usize = 300;
/// How much the guest prints each time.
const OUTPUT: usize = 500_000;
/// A guest that is silent for so long has nothing more to say.
const SILENCE: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(180);

/// A console, whichever way it came.
trait Line: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Line for T {}

#[derive(Clone, Copy)]
enum Way {
    Socket,
    Handler,
    Api,
}

const WAYS: [Way; 3] = [Way::Socket, Way::Handler, Way::Api];

/// What a way takes, in milliseconds for a key and in seconds for the output.
#[derive(Default)]
struct Taken {
    keys: Vec<f64>,
    output: Vec<f64>,
}

/// How long keys and output take on each way.
pub async fn next_to_the_socket(pod: &Pod, door: &Door, api: &Api) -> Result<Vec<Row>> {
    let mut console = pod.console().await;
    console.login("root", "root").await.context("log in")?;
    drop(console);
    let mut taken = WAYS.map(|_| Taken::default());
    for _ in 0..ROUNDS {
        for (way, taken) in WAYS.into_iter().zip(&mut taken) {
            let mut line = open(way, pod, door, api).await?;
            taken.keys.extend(keys(&mut line).await?);
            taken.output.push(output(&mut line).await?);
        }
    }
    let [socket, handler, api] = taken.map(|taken| {
        let ((key, _), (output, _)) = (middle_and_worst(taken.keys), middle_and_worst(taken.output));
        (key, output)
    });
    let mut rows = Vec::new();
    for (what, way, limit) in [("virt-handler", handler, 1.0), ("virt-api and virt-handler", api, 2.0)] {
        let (times, bare) = (way.0 / socket.0, socket.0);
        let words =
            format!("a key through {what} beyond QEMU's socket ({times:.2} times its {bare:.2} ms), p50");
        rows.push(Row::new(words, "ms", way.0 - bare, limit));
        let speed = OUTPUT as f64 / 1e6 / way.1;
        let bare = OUTPUT as f64 / 1e6 / socket.1;
        let words = format!("time of output through {what} ({speed:.2} MB/s, QEMU's socket: {bare:.2} MB/s)");
        rows.push(Row::new(words, "times", way.1 / socket.1, 1.25));
    }
    Ok(rows)
}

async fn open(way: Way, pod: &Pod, door: &Door, api: &Api) -> Result<Box<dyn Line>> {
    let refused = |(code, words): (u16, String)| anyhow::anyhow!("{code}: {words}");
    Ok(match way {
        Way::Socket => Box::new(UnixStream::connect(pod.socket("virt-serial0")).await?),
        Way::Handler => {
            let web = api.path("web", "console");
            let path = web.replacen("/apis/subresources.kubevirt.io", "", 1);
            Box::new(door.client().await.stream(&path).await.map_err(refused)?)
        }
        Way::Api => Box::new(api.client().await.stream(&api.path("web", "console")).await.map_err(refused)?),
    })
}

/// Types, and lets nothing wait.
async fn press(line: &mut Box<dyn Line>, keys: &[u8]) -> Result<()> {
    line.write_all(keys).await?;
    Ok(line.flush().await?)
}

/// Reads until the guest is silent.
async fn drain(line: &mut Box<dyn Line>) -> Result<()> {
    let mut piece = [0; 4096];
    while let Ok(length) = timeout(SILENCE, line.read(&mut piece)).await {
        ensure!(length? > 0, "the console ended");
    }
    Ok(())
}

/// How long each key takes to be seen, in milliseconds: the guest's kernel echoes it.
async fn keys(line: &mut Box<dyn Line>) -> Result<Vec<f64>> {
    press(line, b"\nstty -icanon; cat >/dev/null\n").await?;
    drain(line).await?;
    let mut times = Vec::new();
    for _ in 0..KEYS {
        let began = Instant::now();
        press(line, b"k").await?;
        let mut seen = [0];
        timeout(PATIENCE, line.read_exact(&mut seen)).await.context("a key is not echoed")??;
        ensure!(&seen == b"k", "{seen:?} is echoed");
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    press(line, b"\x03").await?;
    drain(line).await?;
    Ok(times)
}

/// How long it takes until all output is there, in seconds.
async fn output(line: &mut Box<dyn Line>) -> Result<f64> {
    let began = Instant::now();
    // The word at the end is not to be seen in the echo of the command.
    let command = format!("head -c {OUTPUT} /dev/zero | tr '\\0' '#'; echo E''ND\n");
    press(line, command.as_bytes()).await?;
    let (mut seen, mut tail, mut piece) = (0, Vec::new(), vec![0; 64 << 10]);
    while !tail.windows(3).any(|word| word == b"END") {
        // The word may come in two pieces, and with a prompt behind it.
        tail.drain(..tail.len().saturating_sub(2));
        let length = timeout(PATIENCE, line.read(&mut piece)).await.context("the output stops")??;
        ensure!(length > 0, "the console ended");
        seen += piece[..length].iter().filter(|byte| **byte == b'#').count();
        tail.extend_from_slice(&piece[..length]);
    }
    let took = began.elapsed().as_secs_f64();
    // The command itself has one of them; and a prompt of root another.
    ensure!((OUTPUT..OUTPUT + 4).contains(&seen), "{seen} of {OUTPUT} bytes have come");
    drain(line).await?;
    Ok(took)
}
