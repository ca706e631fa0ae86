//! Running programs in the guest.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::client::Agent;
use super::error::AgentError;

const FIRST_LOOK: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// A program to run in the guest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Exec {
    /// Its path in the guest.
    pub path: String,
    /// Its arguments.
    #[serde(rename = "arg")]
    pub arguments: Vec<String>,
    /// Its environment, each as `NAME=value`.
    #[serde(rename = "env", skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    /// What it reads.
    #[serde(rename = "input-data", skip_serializing_if = "Vec::is_empty", serialize_with = "as_base64")]
    pub input: Vec<u8>,
}

/// How a program in the guest is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecStatus {
    /// Whether it has ended. All else is known only then.
    pub exited: bool,
    /// Its exit code.
    pub code: Option<i64>,
    /// The signal that ended it.
    pub signal: Option<i64>,
    /// What it wrote to its output.
    pub stdout: Vec<u8>,
    /// What it wrote to its error output.
    pub stderr: Vec<u8>,
    /// Whether it wrote more than the agent kept.
    pub truncated: bool,
}

fn as_base64<S: serde::Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&BASE64_STANDARD.encode(bytes))
}

impl Agent {
    /// Runs a program and waits for its end.
    ///
    /// The agent tells the end to none but those who ask, so we ask: soon at first, then twice a second.
    pub async fn exec(&self, program: &Exec, within: Duration) -> Result<ExecStatus, AgentError> {
        let until = Instant::now() + within;
        let pid = self.start(program).await?;
        let mut wait = FIRST_LOOK;
        loop {
            let status = self.exec_status(pid).await?;
            if status.exited {
                return Ok(status);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(AgentError::StillRunning { pid, after: within });
            }
            sleep(wait.min(left)).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Starts a program and tells its process id in the guest.
    pub async fn start(&self, program: &Exec) -> Result<i64, AgentError> {
        #[derive(Deserialize)]
        struct Started {
            pid: i64,
        }
        let mut arguments = json!(program);
        arguments["capture-output"] = json!(true);
        self.call::<Started>("guest-exec", arguments).await.map(|told| told.pid)
    }

    /// How a program is doing. Its end is told once: then the agent forgets it.
    pub async fn exec_status(&self, pid: i64) -> Result<ExecStatus, AgentError> {
        let command = "guest-exec-status";
        let told: Value = self.call(command, json!({ "pid": pid })).await?;
        let bytes = |name: &str| match told[name].as_str() {
            Some(text) => decode(command, text),
            None => Ok(Vec::new()),
        };
        let is = |name: &str| told[name].as_bool().unwrap_or(false);
        Ok(ExecStatus {
            exited: is("exited"),
            code: told["exitcode"].as_i64(),
            signal: told["signal"].as_i64(),
            stdout: bytes("out-data")?,
            stderr: bytes("err-data")?,
            truncated: is("out-truncated") || is("err-truncated"),
        })
    }
}

pub(super) fn decode(command: &str, text: &str) -> Result<Vec<u8>, AgentError> {
    BASE64_STANDARD
        .decode(text)
        .map_err(|error| AgentError::Unusable { command: command.to_owned(), reason: error.to_string() })
}
