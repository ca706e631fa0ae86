//! `expose`: a service in front of virtual machines.

mod service;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Service;
use kube::Resource;
use kube::api::PostParams;
use kubevirt_api::replica_set::VirtualMachineInstanceReplicaSet;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;

use self::service::{Behind, Kind, Wanted};
use super::tell_idle;
use crate::connect::{Connect, Session};
use crate::output::say;

/// Expose a virtual machine, an instance or a replica set of instances as a service.
///
/// The service selects the machine's pod, or the pods of the replica set's selector, which must have labels only.
/// Without --port it has all ports that the machine lists for the pod network.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What is exposed: vm, vmi or vmirs
    #[arg(value_name = "TYPE")]
    pub kind: String,
    /// Its name
    #[arg(value_name = "NAME")]
    pub target: String,
    /// Name of the service
    #[arg(long)]
    pub name: String,
    /// Address of the service in the cluster; one is chosen if left out, and None makes a headless service
    #[arg(long, value_name = "IP")]
    pub cluster_ip: Option<String>,
    /// Address outside of the cluster that the service also accepts, if it is routed to a node
    #[arg(long, value_name = "IP")]
    pub external_ip: Option<String>,
    /// Port of the service
    #[arg(long)]
    pub port: Option<i32>,
    /// Protocol of the port: TCP or UDP
    #[arg(long)]
    pub protocol: Option<String>,
    /// Name or number of the port in the guest; the service's own if left out
    #[arg(long, value_name = "PORT")]
    pub target_port: Option<String>,
    /// Type of the service: ClusterIP, NodePort or LoadBalancer
    #[arg(long = "type", value_name = "TYPE", default_value = "ClusterIP")]
    pub service_type: String,
    /// Name of the port
    #[arg(long, value_name = "NAME")]
    pub port_name: Option<String>,
    /// Families of the service's addresses: IPv4, IPv6, or both in order of preference with a comma
    #[arg(long, value_name = "FAMILIES")]
    pub ip_family: Option<String>,
    /// Whether one or two families are needed: SingleStack, PreferDualStack or RequireDualStack
    #[arg(long, value_name = "POLICY")]
    pub ip_family_policy: Option<String>,
}

const EXAMPLES: &str = "  # Reach SSH of a virtual machine through every node
  {program} expose vm myvm --port 22 --name myvm-ssh --type NodePort

  # All ports that the instances of a replica set list for the pod network
  {program} expose vmirs myset --name myset-service

  # Port 8080 of the guests as port 80
  {program} expose vmirs myset --port 80 --target-port 8080 --name myset-web";

impl Arguments {
    /// Creates the service.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let wanted = Wanted::of(&self)?;
        let session = connect.session().await?;
        let behind = behind(session, wanted.kind, &self.target).await?;
        let service = wanted.service(&behind, &session.namespace)?;
        tell_idle(&wanted.without_port, "on the ports that the machine lists, without --port");
        let services = session.api::<Service>(None);
        services.create(&PostParams::default(), &service).await.context("service creation failed")?;
        say!("Service {} successfully created for {} {}", self.name, self.kind.to_lowercase(), self.target);
        Ok(ExitCode::SUCCESS)
    }
}

/// What the service is put in front of.
async fn behind(session: &Session, kind: Kind, name: &str) -> Result<Behind> {
    match kind {
        Kind::Vmi => {
            let vmi = session.api::<VirtualMachineInstance>(None).get(name).await;
            let vmi = vmi.context("error fetching VirtualMachineInstance")?;
            Ok(Behind::machine(name, vmi.controller_owner_ref(&()), Some(&vmi.spec)))
        }
        Kind::Vm => {
            let vm = session.api::<VirtualMachine>(None).get(name).await;
            let vm = vm.context("error fetching VirtualMachine")?;
            Ok(Behind::machine(name, vm.controller_owner_ref(&()), vm.spec.template.spec.as_ref()))
        }
        Kind::ReplicaSet => {
            let set = session.api::<VirtualMachineInstanceReplicaSet>(None).get(name).await;
            let set = set.context("error fetching VirtualMachineInstanceReplicaSet")?;
            let template = set.spec.template.spec.as_ref();
            Ok(Behind::replica_set(&set.spec.selector, set.controller_owner_ref(&()), template)?)
        }
    }
}
