//! Files in the guest.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::client::Agent;
use super::error::AgentError;
use super::exec::decode;

/// What is read or written at once: the agent takes no more than 48 MiB, and base64 takes a third more.
const PART: usize = 1 << 20;

/// A file that is open in the guest until it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileHandle(i64);

impl Agent {
    /// Opens a file; the mode is that of `fopen`: `r`, `w`, `a`, `r+`, …
    pub async fn open(&self, path: &str, mode: &str) -> Result<FileHandle, AgentError> {
        self.call("guest-file-open", json!({ "path": path, "mode": mode })).await
    }

    /// Closes a file.
    pub async fn close(&self, file: FileHandle) -> Result<(), AgentError> {
        self.run("guest-file-close", json!({ "handle": file })).await
    }

    /// Reads on, up to so many bytes, and tells whether the file ends there.
    pub async fn read(&self, file: FileHandle, count: usize) -> Result<(Vec<u8>, bool), AgentError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case")]
        struct Part {
            buf_b64: String,
            eof: bool,
        }
        let command = "guest-file-read";
        let part: Part = self.call(command, json!({ "handle": file, "count": count })).await?;
        Ok((decode(command, &part.buf_b64)?, part.eof))
    }

    /// Writes on, and tells how much was taken.
    pub async fn write(&self, file: FileHandle, bytes: &[u8]) -> Result<usize, AgentError> {
        #[derive(Deserialize)]
        struct Written {
            count: usize,
        }
        let arguments = json!({ "handle": file, "buf-b64": BASE64_STANDARD.encode(bytes) });
        self.call::<Written>("guest-file-write", arguments).await.map(|told| told.count)
    }

    /// Reads a whole file, but no more than so many bytes.
    pub async fn read_file(&self, path: &str, at_most: usize) -> Result<Vec<u8>, AgentError> {
        let file = self.open(path, "r").await?;
        let content = self.read_to_end(file, at_most).await;
        self.close(file).await?;
        content
    }

    /// Writes a whole file, in place of what was there.
    pub async fn write_file(&self, path: &str, content: &[u8]) -> Result<(), AgentError> {
        let file = self.open(path, "w").await?;
        let written = self.write_all(file, content).await;
        self.close(file).await?;
        written
    }

    async fn read_to_end(&self, file: FileHandle, at_most: usize) -> Result<Vec<u8>, AgentError> {
        let mut content = Vec::new();
        while content.len() < at_most {
            let (part, end) = self.read(file, PART.min(at_most - content.len())).await?;
            content.extend_from_slice(&part);
            if end || part.is_empty() {
                break;
            }
        }
        Ok(content)
    }

    async fn write_all(&self, file: FileHandle, mut content: &[u8]) -> Result<(), AgentError> {
        while !content.is_empty() {
            let taken = self.write(file, &content[..content.len().min(PART)]).await?;
            content = content.get(taken.max(1)..).unwrap_or_default();
        }
        self.run("guest-file-flush", json!({ "handle": file })).await
    }
}
