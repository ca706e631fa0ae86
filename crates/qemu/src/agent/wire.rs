//! The agent's protocol: one request at a time and no numbers on replies, so both sides must stay in step.

use std::io;
use std::time::SystemTime;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::lines::{Lines, NoLine};

/// The longest reply: a file is read in parts, but what a program prints comes whole.
const LONGEST_REPLY: usize = 64 << 20;
/// Not part of any JSON text: the agent forgets what it has heard of a request.
const ATTENTION: u8 = 0xff;

/// One connection.
#[derive(Debug)]
pub(crate) struct Wire {
    lines: Lines<OwnedReadHalf>,
    to: OwnedWriteHalf,
    in_step: bool,
    token: u64,
}

/// Why nothing can be said any more.
#[derive(Debug)]
pub(crate) struct Broken;

/// The agent's answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Reply {
    #[serde(rename = "return", default)]
    pub(crate) returned: Value,
    pub(crate) error: Option<Failure>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Failure {
    pub(crate) class: String,
    pub(crate) desc: String,
}

impl Wire {
    pub(crate) fn new(stream: UnixStream) -> Self {
        let (from, to) = stream.into_split();
        // A start that differs from that of whoever spoke here before, whose replies may still be on the way.
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let token = u64::from(since.subsec_nanos()) << 16;
        Self { lines: Lines::new(from, LONGEST_REPLY), to, in_step: false, token }
    }

    /// Says a request. From here until its reply, whoever gives up leaves us out of step, which the next
    /// request mends.
    pub(crate) async fn say(&mut self, command: &str, arguments: Value) -> Result<(), Broken> {
        if !self.in_step {
            self.get_in_step().await?;
        }
        self.in_step = false;
        let mut request = json!({ "execute": command });
        if !arguments.is_null() {
            request["arguments"] = arguments;
        }
        self.write(request.to_string().into_bytes()).await
    }

    /// The reply to the last request. None if it is no JSON that we could read.
    pub(crate) async fn hear(&mut self) -> Result<Option<Reply>, Broken> {
        let line = self.line().await?;
        let reply = serde_json::from_slice(&line).ok();
        self.in_step = reply.is_some();
        Ok(reply)
    }

    /// Lets the agent repeat a number, and drops all that it says before.
    async fn get_in_step(&mut self) -> Result<(), Broken> {
        self.token += 1;
        let request =
            json!({ "execute": "guest-sync-delimited", "arguments": { "id": self.token } }).to_string();
        self.write([&[ATTENTION], request.as_bytes()].concat()).await?;
        loop {
            let line = self.line().await?;
            let Some(at) = line.iter().rposition(|byte| *byte == ATTENTION) else { continue };
            let reply = serde_json::from_slice::<Reply>(&line[at + 1..]);
            if reply.is_ok_and(|reply| reply.returned == self.token) {
                self.in_step = true;
                return Ok(());
            }
        }
    }

    async fn write(&mut self, mut line: Vec<u8>) -> Result<(), Broken> {
        line.push(b'\n');
        self.to.write_all(&line).await.map_err(|_: io::Error| Broken)
    }

    async fn line(&mut self) -> Result<Vec<u8>, Broken> {
        self.lines.next().await.map_err(|_: NoLine| Broken)
    }
}
