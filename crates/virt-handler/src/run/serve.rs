//! What the handler answers over HTTPS: whether it is well, where its time goes, and what its machines use.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use kubevirt_component::tls::{Policy, Tls};
use kubevirt_component::{Common, Health, Metrics, Role, profiler, serve};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::labels::facts::Facts;
use crate::metrics::{Gpus, Scraper, of_node, route};
use crate::vmi::Instances;

/// Where we listen if nobody says otherwise.
const PORT: u16 = 8185;

/// What is needed to answer.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) health: Health,
    pub(super) metrics: Metrics,
    pub(super) instances: Arc<Instances>,
    /// How many may ask for metrics at once.
    pub(super) requests: usize,
    /// What node-labeller found out.
    pub(super) facts: PathBuf,
    /// The kubelet's folder.
    pub(super) kubelet: PathBuf,
}

impl Server {
    /// Answers from now on, until `stop`.
    pub(super) async fn start(
        self,
        common: &Common,
        policy: watch::Receiver<Policy>,
        stop: &CancellationToken,
    ) -> Result<()> {
        let tls = Tls::follow(common.certificate(Role::Handler), None, policy, stop)?;
        let address = common.address(PORT);
        let server =
            serve::Server::bind(address, tls).await.with_context(|| format!("cannot listen on {address}"))?;
        let (router, stop) = (self.routes(), stop.clone());
        tokio::spawn(async move { server.serve(router, &stop).await });
        Ok(())
    }

    fn routes(self) -> Router {
        let (well, ready) = (self.health.clone(), self.health.clone());
        let node = Facts::read(&self.facts).map(|facts| of_node(&facts, &self.instances.node));
        let gpus = Gpus::new(&self.kubelet, &self.instances.node);
        let profiler = profiler::routes(self.instances.configuration.clone());
        let instances = self.instances;
        let launchers = Arc::new(move || instances.sockets());
        Router::new()
            .route("/healthz", get(async move || well.well()))
            .route("/readyz", get(async move || is_ready(&ready)))
            .merge(profiler)
            .merge(route(
                self.metrics,
                Scraper::new(self.requests),
                launchers,
                gpus,
                node.unwrap_or_default(),
            ))
    }
}

fn is_ready(health: &Health) -> (StatusCode, &'static str) {
    if health.is_ready() { (StatusCode::OK, "ok") } else { (StatusCode::SERVICE_UNAVAILABLE, "not ready") }
}
