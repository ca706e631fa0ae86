//! What virt-api asks of this node on behalf of users: consoles, displays, and commands to machines.
//!
//! Who asks was checked twice: by TLS, which knows clients of this installation's authority only, and by the name in
//! the certificate. What is asked for goes to the launcher of the instance: commands over its own connection,
//! streams to QEMU's sockets in the launcher's files, which are not trusted.

mod answers;
#[cfg(test)]
mod any_request;
mod body;
mod client;
mod commands;
mod console;
mod find;
mod parameters;
mod questions;
mod seats;
mod streams;
#[cfg(test)]
mod tests;
mod vsock;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::routing::{MethodRouter, get, put};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kubevirt_api::names::components::secrets;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::tls::{Authorities, Clients, Files, Policy, Tls};
use kubevirt_component::{Recorder, Store, Watch, serve};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use client::Trust;

use crate::domains::Domains;
use crate::launchers::Launchers;
use crate::prepare::Folders;
use seats::{Seats, Slots};

/// Where everything of an instance is.
const INSTANCE: &str = "/v1/namespaces/{namespace}/virtualmachineinstances/{name}";

/// What is needed to answer.
pub struct Server {
    /// The instances of this node.
    pub here: Store<VirtualMachineInstance>,
    /// Whose launcher is in which pod.
    pub domains: Arc<Domains>,
    /// The launchers.
    pub launchers: Arc<Launchers>,
    /// Where things lie on the node.
    pub folders: Folders,
    /// The folder in a launcher's container that has the sockets of its machine.
    pub private: PathBuf,
    /// Tells users what happened.
    pub recorder: Recorder,
    /// What this node shows to guests over vsock.
    pub to_guests: Files,
    /// Whose word counts.
    pub trust: Trust,
    /// Streams end with this.
    pub stop: CancellationToken,
}

/// A server, and who is connected through it.
struct Desk {
    server: Server,
    /// All streams that are open.
    streams: TaskTracker,
    consoles: Seats,
    displays: Seats,
    usb: Slots,
}

type Shared = Arc<Desk>;

impl Server {
    /// All that can be asked for.
    fn routes(self, streams: TaskTracker) -> Router {
        let trust = self.trust;
        let (consoles, displays, usb) = (Seats::default(), Seats::default(), Slots::default());
        let desk = Desk { server: self, streams, consoles, displays, usb };
        let mut router = Router::new();
        for (name, route) in routes() {
            router = router.route(&format!("{INSTANCE}/{name}"), route);
        }
        let check = move |request, next| client::check(trust, request, next);
        router.with_state(Arc::new(desk)).layer(axum::middleware::from_fn(check))
    }

    /// Answers from when the authority of clients is known until told to stop.
    pub async fn listen(
        self,
        address: SocketAddr,
        files: Files,
        authority: watch::Receiver<String>,
        policy: watch::Receiver<Policy>,
    ) -> Result<()> {
        let stop = self.stop.clone();
        let mut known = authority.clone();
        let Some(known) = stop.run_until_cancelled(known.wait_for(|text| !text.is_empty())).await else {
            return Ok(());
        };
        known.context("the authority of clients will never be known")?;
        let clients = Clients { authorities: Authorities::Live(authority), required: true };
        let tls = Tls::follow(files, Some(clients), policy, &stop)?;
        let server =
            serve::Server::bind(address, tls).await.with_context(|| format!("cannot listen on {address}"))?;
        tracing::info!(%address, "consoles can be connected to");
        let streams = TaskTracker::new();
        server.serve(self.routes(streams.clone()), &stop).await;
        streams.close();
        // Everyone hears that the handler ends, unless somebody does not listen.
        let _ = tokio::time::timeout(streams::FAREWELL, streams.wait()).await;
        Ok(())
    }
}

fn routes() -> [(&'static str, MethodRouter<Shared>); 19] {
    [
        ("console", get(streams::console)),
        ("vnc", get(streams::vnc)),
        ("vnc/screenshot", get(questions::screenshot)),
        ("usbredir", get(streams::usb)),
        ("vsock", get(streams::vsock)),
        ("pause", put(commands::pause)),
        ("unpause", put(commands::unpause)),
        ("freeze", put(commands::freeze)),
        ("unfreeze", put(commands::unfreeze)),
        ("reset", put(commands::reset)),
        ("softreboot", put(commands::soft_reboot)),
        ("backup", put(commands::back_up)),
        ("redefine-checkpoint", put(commands::redefine_checkpoint)),
        ("guestosinfo", get(questions::guest_info)),
        ("userlist", get(questions::users)),
        ("filesystemlist", get(questions::filesystems)),
        ("sev/fetchcertchain", get(questions::sev_certificates)),
        ("sev/querylaunchmeasurement", get(questions::sev_measurement)),
        ("sev/injectlaunchsecret", put(commands::inject_secret)),
    ]
}

/// The certificates of the installation's authority, as they are now and whenever they change.
pub fn authority(
    client: &Client,
    namespace: &str,
    name: &str,
    stop: &CancellationToken,
) -> watch::Receiver<String> {
    let (sender, receiver) = watch::channel(String::new());
    Watch::<ConfigMap>::within(client.clone(), namespace)
        .fields(&format!("metadata.name={name}"))
        .tells(move |change| {
            // A ConfigMap that is gone for a moment does not lock everyone out.
            let data = change.new.and_then(|map| map.data.as_ref());
            if let Some(bundle) = data.and_then(|data| data.get(secrets::CA_BUNDLE)) {
                sender.send_if_modified(|known| {
                    let news = known != bundle;
                    known.clone_from(bundle);
                    news
                });
            }
        })
        .start(stop);
    receiver
}
