//! A profile of where a component spends its CPU time: `/start-profiler`, `/stop-profiler` and `/dump-profiler`.
//!
//! Nothing of it is there before somebody starts it. Then a timer that counts CPU time interrupts whoever uses it
//! (`signal`), and a copy of that thread's stack goes to a thread of our own, which finds the callers (`unwind`) by
//! the tables of the program (`elf`, `programs`) and counts them (`cpu`). `pprof` writes down what was counted.

mod cpu;
mod elf;
mod pprof;
mod programs;
mod signal;
mod unwind;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kubevirt_admission::ClusterConfig;
use serde_json::{Value, json};
use tokio::task::{AbortHandle, spawn_blocking};

use crate::configuration::Configuration;

/// The name of the profile among the results.
pub const CPU: &str = "cpu.pprof";

/// Whether the installation lets profiles be taken.
pub fn is_allowed(config: &ClusterConfig) -> bool {
    let developer = config.configuration().developer_configuration.as_ref();
    developer.is_some_and(|developer| developer.cluster_profiler == Some(true))
}

/// The refusal to do something with a profiler.
pub fn refusal(what: &str) -> String {
    format!("Unable to {what}. \"ClusterProfiler\" feature gate must be enabled")
}

/// The routes by which virt-api asks for a profile of this process.
pub fn routes(configuration: Configuration) -> Router {
    let profiler = Arc::new(Profiler { configuration, follower: Mutex::default() });
    let (start, stop, dump) = (profiler.clone(), profiler.clone(), profiler);
    Router::new()
        .route("/start-profiler", get(move || async move { start.start().await }))
        .route("/stop-profiler", get(move || async move { stop.stop().await }))
        .route("/dump-profiler", get(move || async move { dump.dump().await }))
}

struct Profiler {
    configuration: Configuration,
    /// Ends a profile that is no longer allowed.
    follower: Mutex<Option<AbortHandle>>,
}

impl Profiler {
    async fn start(&self) -> Response {
        if !is_allowed(&self.configuration.now()) {
            return forbidden("start profiler");
        }
        match spawn_blocking(cpu::start).await.map_err(std::io::Error::other).flatten() {
            Ok(()) => {
                let follower = tokio::spawn(stop_when_refused(self.configuration.clone()));
                self.follow(Some(follower.abort_handle()));
                StatusCode::OK.into_response()
            }
            Err(error) => broken("start", &error),
        }
    }

    async fn stop(&self) -> Response {
        if !is_allowed(&self.configuration.now()) {
            return forbidden("stop profiler");
        }
        self.follow(None);
        match spawn_blocking(cpu::stop).await {
            Ok(()) => StatusCode::OK.into_response(),
            Err(error) => broken("stop", &error),
        }
    }

    async fn dump(&self) -> Response {
        if !is_allowed(&self.configuration.now()) {
            return forbidden("retrieve profiler data");
        }
        match spawn_blocking(cpu::profile).await.map_err(std::io::Error::other).flatten() {
            Ok(profile) => {
                ([(CONTENT_TYPE, "application/json")], results(profile).to_string()).into_response()
            }
            Err(error) => broken("dump", &error),
        }
    }

    fn follow(&self, follower: Option<AbortHandle>) {
        let last =
            std::mem::replace(&mut *self.follower.lock().unwrap_or_else(PoisonError::into_inner), follower);
        if let Some(last) = last {
            last.abort();
        }
    }
}

/// Who turned the setting off could not stop a profiler any more.
async fn stop_when_refused(mut configuration: Configuration) {
    while is_allowed(&configuration.now()) {
        configuration.changed().await;
    }
    let _ = spawn_blocking(cpu::stop).await;
}

/// The results as virt-api passes them on.
fn results(profile: Option<Vec<u8>>) -> Value {
    let data: BTreeMap<&str, String> =
        profile.into_iter().map(|bytes| (CPU, STANDARD.encode(bytes))).collect();
    if data.is_empty() { json!({}) } else { json!({ "pprofData": data }) }
}

fn forbidden(what: &str) -> Response {
    (StatusCode::FORBIDDEN, refusal(what)).into_response()
}

fn broken(what: &str, why: &dyn std::fmt::Display) -> Response {
    let words = format!("could not {what} internal profiling: {why}");
    (StatusCode::INTERNAL_SERVER_ERROR, words).into_response()
}

#[cfg(test)]
mod tests;
