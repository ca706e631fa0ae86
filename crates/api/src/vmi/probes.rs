//! Liveness and readiness probes of a guest.

use k8s_openapi::api::core::v1::{ExecAction, HTTPGetAction, TCPSocketAction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// A health check; set exactly one of `exec`, `guestAgentPing`, `httpGet` and `tcpSocket`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// Command run inside the guest by its agent; exit code 0 is healthy.
    pub exec: Option<ExecAction>,
    /// When present, the guest agent answering a ping is healthy.
    pub guest_agent_ping: Option<GuestAgentPing>,
    /// HTTP request to the guest; a status from 200 to 399 is healthy.
    pub http_get: Option<HTTPGetAction>,
    /// TCP connection to the guest; being accepted is healthy.
    pub tcp_socket: Option<TCPSocketAction>,
    /// Seconds after start before the first check; 0 if unset.
    pub initial_delay_seconds: Option<i32>,
    /// Seconds before a check counts as failed; 1 if unset, and timed-out commands keep running in the
    /// guest.
    pub timeout_seconds: Option<i32>,
    /// Seconds between checks, at least 1; 10 if unset.
    pub period_seconds: Option<i32>,
    /// Successes in a row to be healthy again, at least 1; 1 if unset, and always 1 for liveness.
    pub success_threshold: Option<i32>,
    /// Failures in a row to be unhealthy, at least 1; 3 if unset.
    pub failure_threshold: Option<i32>,
}

/// Empty marker; its presence probes the guest agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuestAgentPing {}
