//! The controllers, running once for all tests of this program that are on the same cluster.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kubevirt_component::configuration::Configuration;
use kubevirt_component::{Common, Limits, Metrics, Role};
use kubevirt_virt_controller::context::{Context, Settings};
use kubevirt_virt_controller::metrics::Counts;
use kubevirt_virt_controller::{node, pool, replica_set, vm, vmi};
use test_kit::{API_SERVER, Shared, Test};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

pub const IMAGE: &str = "localhost/launcher:test";

/// Much more than anything takes on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Of its own, so that other tests need not wait while its API server is stopped or its kinds change.
static TROUBLED: Shared = Shared::new("test-api-trouble", 0);

/// The clusters, by their kubeconfig, that have controllers.
static STARTED: Mutex<BTreeSet<PathBuf>> = Mutex::const_new(BTreeSet::new());

/// Runs a test while the controllers run.
pub async fn run(name: &str, body: impl AsyncFnOnce(&Test) -> Result<()>) -> Result<()> {
    API_SERVER
        .run(name, async |test| {
            prepare(test).await?;
            body(test).await
        })
        .await
}

/// The same for a test that stops or changes what others use.
pub async fn run_alone(name: &str, body: impl AsyncFnOnce(&Test) -> Result<()>) -> Result<()> {
    TROUBLED
        .run_alone(name, async |test| {
            prepare(test).await?;
            body(test).await
        })
        .await
}

async fn prepare(test: &Test) -> Result<()> {
    start(test).await?;
    // Nobody else makes it where only an API server runs.
    let mut account = ServiceAccount::default();
    account.metadata.name = Some("default".into());
    let _ = test.api::<ServiceAccount>().create(&PostParams::default(), &account).await;
    Ok(())
}

/// Each test has a runtime of its own, which ends with it. The controllers have theirs, and stay.
async fn start(test: &Test) -> Result<()> {
    let mut started = STARTED.lock().await;
    let path = test.cluster().kubeconfig();
    if !started.insert(path.clone()) {
        return Ok(());
    }
    test.establish_crds().await?;
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async move {
            let client =
                flags(path).client(Role::Controller, &Limits::none(), &Metrics::new()).await.unwrap();
            let namespace = "default".into();
            let settings = Settings { launcher_image: IMAGE.into(), namespace, ..Settings::default() };
            let configuration = Configuration::fixed(Default::default());
            let context =
                Context::start(client, configuration, settings, Counts::default(), CancellationToken::new());
            let controllers = [
                vm::start(&context, 4),
                vmi::start(&context, 4),
                node::start(&context, 2),
                replica_set::start(&context, 2),
                pool::start(&context, 2),
            ];
            for controller in controllers {
                controller.await.unwrap();
            }
        });
    });
    Ok(())
}

/// The client is that of the daemon, which has to find its way back to an API server that was restarted.
fn flags(kubeconfig: PathBuf) -> Common {
    Common {
        listen: Ipv4Addr::LOCALHOST.into(),
        port: None,
        verbosity: 2,
        kubeconfig: Some(kubeconfig),
        master: None,
        tls_cert_file: None,
        tls_key_file: None,
        namespace: None,
    }
}

/// Waits until something holds that no single object shows.
pub async fn until(what: &str, holds: impl AsyncFn() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    while !holds().await? {
        if begin.elapsed() > PATIENCE {
            bail!("waited in vain until {what}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
