//! A real Prometheus in a node's network, which scrapes the components as it would in any cluster.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use test_kit::Test;
use xtask::install::NAMESPACE;

/// Where it answers, in the network of its node.
const ADDRESS: &str = "127.0.0.1:9095";
const NODE: &str = "node01";
/// The port of all components.
const PORT: u16 = 8443;

/// What is scraped: the component, and the name that its certificate is for.
pub const COMPONENTS: [&str; 3] = ["virt-api", "virt-controller", "virt-handler"];

/// A Prometheus that runs as long as this is there.
pub struct Prometheus {
    process: Child,
    folder: PathBuf,
    enter: Vec<OsString>,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Prometheus {
    /// Starts it; it finds the components where they are now.
    pub async fn start(test: &Test) -> Result<Self> {
        let root = test.cluster().layout().root();
        let folder = root.join("prometheus");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let mut jobs = Vec::new();
        for component in COMPONENTS {
            let targets: Vec<String> = pods(test, component).await?.into_values().collect();
            ensure!(!targets.is_empty(), "no {component} runs");
            jobs.push(job(component, &targets, &root.join("certificates/kubevirt-ca/tls.crt")));
        }
        let settings = json!({
            "global": {"scrape_interval": "3s", "scrape_timeout": "3s"},
            "scrape_configs": jobs,
        });
        let config = folder.join("prometheus.yml");
        // JSON is YAML.
        fs::write(&config, settings.to_string())?;
        let enter = test.cluster().enter_node(NODE)?;
        let process = Command::new(&enter[0])
            .args(&enter[1..])
            // It is in another process namespace, so it must go when what brought it there goes.
            .args(["setpriv", "--pdeathsig", "KILL", "prometheus"])
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={ADDRESS}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("log"))?)
            .spawn()
            .context("run prometheus, of the Debian package of this name")?;
        Ok(Self { process, folder, enter })
    }

    /// What a query gives: a list of series with their labels and values.
    pub fn query(&self, query: &str) -> Result<Vec<Value>> {
        let output = Command::new(&self.enter[0])
            .args(&self.enter[1..])
            .args(["promtool", "query", "instant", "--format=json", &format!("http://{ADDRESS}"), query])
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{query}: {said}{}", self.log());
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(20).collect();
        last.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

fn job(component: &str, targets: &[String], authority: &Path) -> Value {
    json!({
        "job_name": component,
        "scheme": "https",
        "tls_config": {"ca_file": authority, "server_name": format!("{component}.{NAMESPACE}.svc")},
        "static_configs": [{"targets": targets}],
    })
}

/// The pods of a component, and where they answer.
pub async fn pods(test: &Test, component: &str) -> Result<BTreeMap<String, String>> {
    let pods: Api<Pod> = Api::namespaced(test.client(), NAMESPACE);
    let chosen = ListParams::default().labels(&format!("kubevirt.io={component}"));
    let all = pods.list(&chosen).await?.items.into_iter();
    let address = |pod: &Pod| pod.status.as_ref().and_then(|status| status.pod_ip.clone());
    Ok(all.filter_map(|pod| Some((pod.name_any(), format!("{}:{PORT}", address(&pod)?)))).collect())
}

/// What `promtool check metrics` has to say of what a pod tells.
pub fn complaints(test: &Test, pod: &str) -> Result<Vec<String>> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/https:{pod}:{PORT}/proxy/metrics");
    let told = test.cluster().kubectl(&["get", "--raw", &path])?;
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = promtool.stdin.take().context("promtool takes no input")?;
    let writer = std::thread::spawn(move || input.write_all(told.as_bytes()));
    let output = promtool.wait_with_output()?;
    writer.join().map_err(|_| anyhow::anyhow!("the writer broke"))??;
    let said = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&said).lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}
