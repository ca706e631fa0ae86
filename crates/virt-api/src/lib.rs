//! virt-api: admission webhooks and subresources.

mod arguments;
mod cluster;
mod counters;
mod metrics;
mod subresources;
#[cfg(test)]
mod testing;
mod webhooks;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use kubevirt_admission::OwnAccounts;
use kubevirt_component::serve::Server;
use kubevirt_component::tls::Tls;
use kubevirt_component::{Configuration, Health, Limits, Metrics, Role, profiler, start, webhook_rate};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

pub use arguments::Arguments;
use cluster::Cluster;
pub use metrics::Told;
use subresources::{Needs, Subresources};
use webhooks::Webhooks;

/// The port that is listened on where flags name none.
const PORT: u16 = 443;
/// How long requests are still taken after the order to stop: that is how long it takes until no new ones come.
const LINGER: Duration = Duration::from_secs(5);

/// Runs virt-api; its name is the first argument.
pub fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let arguments = Arguments::parse_from(arguments);
    start::run(Role::Api, &arguments.common, async |stop| serve(&arguments, &stop).await)
}

/// Answers requests until told to stop.
pub async fn serve(arguments: &Arguments, stop: &CancellationToken) -> Result<ExitCode> {
    let common = &arguments.common;
    let (metrics, namespace) = (Metrics::new(), common.namespace());
    let health = Health::new(Role::Api, &metrics);
    let Told { connections, counters } = Told::new(&metrics);
    let (limits, of_webhooks) =
        (Limits::new(Role::Api.default_rate()), Limits::new(Role::Api.default_rate()));
    let client = common.client(Role::Api, &limits, &metrics).await?;
    let webhook_client = common.client(Role::Api, &of_webhooks, &metrics).await?;

    // All of this outlives the order to stop, so that the last requests are answered as the first were.
    let end = CancellationToken::new();
    let _ended_on_return = end.clone().drop_guard();
    let configuration = Configuration::begin(client.clone(), &namespace, &end);
    let policy = configuration.apply(Role::Api, common.verbosity, None, &limits, &end);
    limit_webhooks(configuration.clone(), of_webhooks, &end);
    let cluster = Arc::new(Cluster::start(&client, webhook_client.clone(), &end));
    let needs = Needs {
        arguments,
        client,
        reviews: webhook_client.clone(),
        cluster: cluster.clone(),
        configuration: configuration.clone(),
        connections,
    };
    let subresources = Arc::new(Subresources::start(needs, &end));
    let clients = Some(subresources.clients());
    let tls = Tls::follow(common.certificate(Role::Api), clients, policy, &end).context("certificates")?;
    let server = Server::bind(common.address(PORT), tls).await.context("listen")?;
    tracing::info!(address = %server.address()?, namespace, "listening");

    let mut router = health
        .routes(&metrics)
        .merge(profiler::routes(configuration.clone()))
        .merge(subresources.clone().routes());
    let webhooks = (!arguments.subresources_only).then(|| {
        Arc::new(Webhooks {
            cluster: cluster.clone(),
            configuration,
            own_accounts: OwnAccounts::of_installation(&namespace),
            client: webhook_client,
            counters,
            synced: OnceCell::new(),
        })
    });
    if let Some(webhooks) = &webhooks {
        router = router.merge(webhooks.clone().routes());
    }
    let known = {
        let subresources = subresources.clone();
        async move {
            subresources.ready().await;
            cluster.ready().await;
            if let Some(webhooks) = webhooks {
                webhooks.ready().await;
            }
        }
    };
    tokio::spawn(tell_ready(known, stop.clone(), health.clone()));
    tokio::spawn(linger(stop.clone(), end.clone(), health));
    server.serve(router, &end).await;
    subresources.finish().await;
    Ok(ExitCode::SUCCESS)
}

/// Says that requests are wanted once all is known.
async fn tell_ready(known: impl Future<Output = ()>, stop: CancellationToken, health: Health) {
    if stop.run_until_cancelled(known).await.is_some() {
        tracing::info!("ready");
        health.set_ready(true);
    }
}

/// Lets the rate of webhooks follow the configuration.
fn limit_webhooks(mut configuration: Configuration, limits: Limits, end: &CancellationToken) {
    let end = end.clone();
    tokio::spawn(async move {
        let follow = async {
            loop {
                limits.set(webhook_rate(&configuration.now()));
                configuration.changed().await;
            }
        };
        end.run_until_cancelled(follow).await;
    });
}

/// Says that no more requests are wanted, and ends when none should come any more.
async fn linger(stop: CancellationToken, end: CancellationToken, health: Health) {
    stop.cancelled().await;
    health.set_ready(false);
    tokio::time::sleep(LINGER).await;
    end.cancel();
}
