//! The life of the program: one of several leads, and only it works.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;
use kubevirt_component::leader::{self, Candidate, Ended, Term};
use kubevirt_component::serve::Server;
use kubevirt_component::tls::Tls;
use kubevirt_component::{Configuration, Health, Limits, Metrics, Role, profiler, start};
use tokio_util::sync::CancellationToken;

use crate::arguments::{Arguments, Threads};
use crate::context::Context;
use crate::metrics::Told;
use crate::{node, pool, replica_set, vm, vmi};

const PORT: u16 = 8443;

/// Runs virt-controller; its name is the first argument.
pub fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let arguments = Arguments::parse_from(arguments);
    start::run(Role::Controller, &arguments.common, async |stop| live(&arguments, stop).await)
}

async fn live(arguments: &Arguments, stop: CancellationToken) -> Result<ExitCode> {
    arguments.folders.check()?;
    let common = &arguments.common;
    let metrics = Metrics::new();
    let limits = Limits::new(Role::Controller.default_rate());
    // For all that is not the work of the leader. Renewals must not wait behind that.
    let client = common.client(Role::Controller, &Limits::none(), &metrics).await?;
    let namespace = common.namespace();
    let configuration = Configuration::follow(client.clone(), &namespace, &stop).await;
    let policy = configuration.apply(Role::Controller, common.verbosity, None, &limits, &stop);

    let health = Health::new(Role::Controller, &metrics);
    let told = Told::new(&metrics);
    let tls = Tls::follow(common.certificate(Role::Controller), None, policy, &stop)?;
    let server = Server::bind(common.address(PORT), tls).await.context("listen")?;
    let routes = health.routes(&metrics).merge(profiler::routes(configuration.clone()));
    let serving = tokio::spawn({
        let stop = stop.clone();
        async move { server.serve(routes, &stop).await }
    });
    health.set_ready(true);

    let candidate = Candidate {
        namespace,
        lease: Role::Controller.name().to_owned(),
        identity: leader::contender(),
        timing: (&arguments.election).into(),
    };
    loop {
        let configuration = configuration.clone();
        let work = async |term: Term| {
            let client = common.leader_client(&term, Role::Controller, &limits, &metrics).await?;
            health.set_leading(true);
            let (settings, counts) = (arguments.settings(), told.counts.clone());
            let context = Context::start(client, configuration, settings, counts, term.stop);
            context.queues.measure(&metrics);
            told.lead(&context);
            work(&context, &arguments.threads).await;
            anyhow::Ok(())
        };
        let ended = leader::lead(client.clone(), candidate.clone(), &stop, work).await?;
        health.set_leading(false);
        told.follow();
        match ended {
            // Who lost its lease forgot all it knew with the work that was dropped, and may lead again.
            Ended::Lost => {}
            Ended::Done(outcome) => break outcome?,
            Ended::Stopped => break,
        }
    }
    stop.cancel();
    serving.await.context("serve")?;
    Ok(ExitCode::SUCCESS)
}

/// All controllers, until told to stop.
async fn work(context: &Context, threads: &Threads) {
    let controllers = [
        vm::start(context, threads.vms),
        vmi::start(context, threads.vmis),
        node::start(context, threads.nodes),
        replica_set::start(context, threads.replica_sets),
        pool::start(context, threads.pools),
    ];
    for controller in controllers {
        if let Err(error) = controller.await {
            // A controller that is gone would be missed silently; a new process has all of them.
            tracing::error!(%error, "a controller broke");
            context.stop.cancel();
        }
    }
}
