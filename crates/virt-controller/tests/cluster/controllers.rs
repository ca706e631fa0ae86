//! The controllers, running once for all tests of this program.

use std::sync::LazyLock;

use anyhow::Result;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Client, Config};
use kubevirt_component::configuration::Configuration;
use kubevirt_virt_controller::context::{Context, Settings};
use kubevirt_virt_controller::metrics::Counts;
use kubevirt_virt_controller::{node, vm, vmi};
use test_kit::{API_SERVER, Test};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

pub const IMAGE: &str = "localhost/launcher:test";

static STARTED: LazyLock<Mutex<bool>> = LazyLock::new(Mutex::default);

/// Runs a test while the controllers run.
pub async fn run(name: &str, body: impl AsyncFnOnce(&Test) -> Result<()>) -> Result<()> {
    API_SERVER
        .run(name, async |test| {
            start(test).await?;
            // Nobody else makes it where only an API server runs.
            let mut account = ServiceAccount::default();
            account.metadata.name = Some("default".into());
            let _ = test.api::<ServiceAccount>().create(&PostParams::default(), &account).await;
            body(test).await
        })
        .await
}

/// Each test has a runtime of its own, which ends with it. The controllers have theirs, and stay.
async fn start(test: &Test) -> Result<()> {
    let mut started = STARTED.lock().await;
    if *started {
        return Ok(());
    }
    test.establish_crds().await?;
    let path = test.cluster().kubeconfig();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async move {
            let client = connect(&path).await.unwrap();
            let namespace = "default".into();
            let settings = Settings { launcher_image: IMAGE.into(), namespace, ..Settings::default() };
            let configuration = Configuration::fixed(Default::default());
            let context =
                Context::start(client, configuration, settings, Counts::default(), CancellationToken::new());
            let (vms, vmis, nodes) =
                tokio::join!(vm::start(&context, 4), vmi::start(&context, 4), node::start(&context, 2));
            vms.unwrap();
            vmis.unwrap();
            nodes.unwrap();
        });
    });
    *started = true;
    Ok(())
}

async fn connect(kubeconfig: &std::path::Path) -> Result<Client> {
    let file = kube::config::Kubeconfig::read_from(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(file, &Default::default()).await?;
    config.proxy_url = None;
    Ok(Client::try_from(config)?)
}
