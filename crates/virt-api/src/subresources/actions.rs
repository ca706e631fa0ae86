//! What changes machines and instances, or tells of them without asking a node.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{ListParams, PostParams};
use kubevirt_admission::instancetype::expand;
use kubevirt_admission::mutate::vmi::{default_instance_spec, disks, network};
use kubevirt_admission::review::{check_schema, decode as decode_object};
use kubevirt_admission::{Gate, Problems};
use kubevirt_api::crd::KINDS;
use kubevirt_api::migration::{VirtualMachineInstanceMigration, VirtualMachineInstanceMigrationSpec};
use kubevirt_api::names::values::app;
use kubevirt_api::names::{groups, labels};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::patch::is_gone;
use serde_json::Value;

use super::change::Object;
use super::failure::{About, Failure, empty_response, json_response};
use super::graph::{self, Facts};
use super::options::{self, Options, decode, is_dry_run};
use super::plan::lifecycle::{self, Steps};
use super::plan::volumes::Wish;
use super::plan::{evacuation, is_running, memory_dump, ready, sev, volumes};
use super::routes::{Action, On};
use super::seen::{Seen, fetch, look};
use super::{Call, Subresources};

type Answer = Result<Response<Body>, Failure>;

/// What the drain of a node is known by where the cluster says nothing else.
const DRAIN_TAINT: &str = "kubevirt.io/drain";

impl Call<'_> {
    /// The options, and whether nothing is to be changed.
    pub(super) fn options<T: Options>(&self) -> Result<(T, bool), Failure> {
        let options: T = decode(&self.body)?;
        let dry_run = is_dry_run(&options, &self.query.0)?;
        Ok((options, dry_run))
    }

    fn object(&self, dry_run: bool) -> Object<'_> {
        Object { namespace: &self.matched.namespace, name: &self.matched.name, dry_run }
    }
}

fn accepted() -> Response<Body> {
    empty_response(StatusCode::ACCEPTED)
}

impl Subresources {
    pub(super) async fn act(&self, call: &Call<'_>) -> Answer {
        let on_machine = call.matched.route.on == On::Machine;
        match call.matched.route.action {
            Action::Start => self.start_machine(call).await,
            Action::Stop => self.stop_machine(call).await,
            Action::Restart => self.restart(call).await,
            Action::Migrate => self.migrate(call).await,
            Action::AddVolume | Action::RemoveVolume => self.change_volumes(call).await,
            Action::MemoryDump => self.dump_memory(call).await,
            Action::RemoveMemoryDump => self.remove_memory_dump(call).await,
            Action::EvacuateCancel => self.cancel_evacuation(call).await,
            Action::SetupSession => self.set_up_session(call).await,
            Action::ObjectGraph if on_machine => self.graph_of_machine(call).await,
            Action::ObjectGraph => self.graph_of_instance(call).await,
            Action::ExpandSpec => {
                let vm = self.machine(call).await?;
                self.expand(&vm, Failure::internal).await
            }
            Action::ExpandVmSpec => self.expand_given(call).await,
            _ => Err(Failure::no_such_path()),
        }
    }

    async fn machine(&self, call: &Call<'_>) -> Result<Seen<VirtualMachine>, Failure> {
        fetch(&self.client, About::Machine, &call.matched.namespace, &call.matched.name).await
    }

    async fn instance(&self, call: &Call<'_>) -> Result<Seen<VirtualMachineInstance>, Failure> {
        self.instance_named(&call.matched.namespace, &call.matched.name).await
    }

    pub(super) async fn instance_named(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Seen<VirtualMachineInstance>, Failure> {
        fetch(&self.client, About::Instance, namespace, name).await
    }

    /// The instance of a machine, which must be its own.
    pub(super) async fn instance_of_machine(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Seen<VirtualMachineInstance>, Failure> {
        let vm: Seen<VirtualMachine> = fetch(&self.client, About::Machine, namespace, name).await?;
        if vm.status.as_ref().is_none_or(|status| status.created != Some(true)) {
            return Err(Failure::conflict(About::Machine, name, "VMI is not started"));
        }
        let vmi = self.instance_named(namespace, name).await?;
        let owners = vmi.metadata.owner_references.as_deref().unwrap_or_default();
        if owners.iter().any(|owner| Some(&owner.uid) == vm.metadata.uid.as_ref()) {
            return Ok(vmi);
        }
        Err(Failure::internal(format!("unable to retrieve vmi [{name}] for vm: it belongs to somebody else")))
    }

    async fn start_machine(&self, call: &Call<'_>) -> Answer {
        let (options, dry_run) = call.options()?;
        let vm = self.machine(call).await?;
        let vmi = look(&self.client, &call.matched.namespace, &call.matched.name).await?;
        self.take(lifecycle::start(&vm, vmi.as_deref(), &options)?, call.object(dry_run)).await
    }

    async fn stop_machine(&self, call: &Call<'_>) -> Answer {
        let (options, dry_run) = call.options()?;
        let vm = self.machine(call).await?;
        let vmi = look(&self.client, &call.matched.namespace, &call.matched.name).await?;
        self.take(lifecycle::stop(&vm, vmi.as_ref(), &options)?, call.object(dry_run)).await
    }

    async fn restart(&self, call: &Call<'_>) -> Answer {
        let (options, dry_run) = call.options()?;
        lifecycle::check_restart(&options)?;
        let vm = self.machine(call).await?;
        let vmi = look(&self.client, &call.matched.namespace, &call.matched.name).await?;
        self.take(lifecycle::restart(&vm, vmi.as_ref(), &options)?, call.object(dry_run)).await
    }

    /// Carries steps out in their order.
    async fn take(&self, steps: Steps, object: Object<'_>) -> Answer {
        for (index, change) in steps.changes.iter().enumerate() {
            if let Err(failure) = change.apply(&self.client, &object).await {
                if let Some(undo) = steps.undo.as_ref().filter(|_| index > 0 && !object.dry_run)
                    && let Err(error) = undo.apply(&self.client, &object).await
                {
                    tracing::warn!(vmi = object.name, "cannot take a change back: {}", error.message);
                }
                return Err(failure);
            }
        }
        Ok(accepted())
    }

    async fn migrate(&self, call: &Call<'_>) -> Answer {
        let (options, dry_run): (options::MigrateOptions, bool) = call.options()?;
        self.machine(call).await?;
        if !is_running(&*self.instance(call).await?) {
            return Err(Failure::conflict(About::Machine, &call.matched.name, "VM is not running"));
        }
        let spec = VirtualMachineInstanceMigrationSpec {
            vmi_name: Some(call.matched.name.clone()),
            added_node_selector: options.added_node_selector,
            ..VirtualMachineInstanceMigrationSpec::default()
        };
        let mut migration = VirtualMachineInstanceMigration { spec, ..Default::default() };
        migration.metadata.generate_name = Some("kubevirt-migrate-vm-".into());
        let api: Api<VirtualMachineInstanceMigration> =
            Api::namespaced(self.client.clone(), &call.matched.namespace);
        let parameters = PostParams { dry_run, ..PostParams::default() };
        match api.create(&parameters, &migration).await {
            Ok(_) => Ok(accepted()),
            Err(error) => Err(Failure::from_api(&error, "unable to create the migration")),
        }
    }

    async fn change_volumes(&self, call: &Call<'_>) -> Answer {
        let config = self.configuration.now();
        volumes::gate(&config)?;
        let (wish, dry_run) = if call.matched.route.action == Action::AddVolume {
            let (options, dry_run) = call.options()?;
            (Wish::add(options)?, dry_run)
        } else {
            let (options, dry_run) = call.options()?;
            (Wish::remove(options)?, dry_run)
        };
        let change = if call.matched.route.on == On::Machine {
            volumes::of_machine(&self.machine(call).await?, wish, &config)?
        } else {
            volumes::of_instance(&self.instance(call).await?, wish, &config)?
        };
        change.apply(&self.client, &call.object(dry_run)).await?;
        Ok(accepted())
    }

    async fn dump_memory(&self, call: &Call<'_>) -> Answer {
        volumes::gate(&self.configuration.now())?;
        let (options, dry_run): (options::MemoryDump, bool) = call.options()?;
        let vm = self.machine(call).await?;
        let name = memory_dump::claim(&vm, &options.claim_name)?;
        let vmi = self.instance(call).await?;
        let claim: Seen<PersistentVolumeClaim> =
            fetch(&self.client, About::Claim, &call.matched.namespace, &name).await?;
        let share = self.file_system_share(&claim).await?;
        memory_dump::check(&vmi, &claim, share.as_deref())?;
        memory_dump::dump(&vm, &name)?.apply(&self.client, &call.object(dry_run)).await?;
        Ok(accepted())
    }

    /// The share of a claim's file system that is not for files, if there is an importer that knows it.
    async fn file_system_share(&self, claim: &PersistentVolumeClaim) -> Result<Option<String>, Failure> {
        let path = format!("/apis/{}/v1beta1/cdiconfigs/config", groups::CDI);
        let request = axum::http::Request::get(path).body(Vec::new()).map_err(Failure::internal)?;
        match self.client.request::<Value>(request).await {
            Ok(config) => {
                let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
                memory_dump::share(&config, class).map(Some)
            }
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(Failure::internal(format!("unable to retrieve cdi config: {error}"))),
        }
    }

    async fn remove_memory_dump(&self, call: &Call<'_>) -> Answer {
        let (_, dry_run) = call.options::<options::Nothing>()?;
        let vm = self.machine(call).await?;
        memory_dump::remove(&vm)?.apply(&self.client, &call.object(dry_run)).await?;
        Ok(accepted())
    }

    async fn cancel_evacuation(&self, call: &Call<'_>) -> Answer {
        let (options, dry_run) = call.options()?;
        let (namespace, name) = (&call.matched.namespace, &call.matched.name);
        let vmi = match call.matched.route.on {
            On::Machine => self.instance_of_machine(namespace, name).await?,
            _ => self.instance_named(namespace, name).await?,
        };
        let node = evacuation::node(&vmi);
        if !node.is_empty() {
            let node: Option<Seen<Node>> = look(&self.client, "", node).await?;
            let config = self.configuration.now();
            let migrations = config.configuration().migrations.as_ref();
            let taint = migrations.and_then(|migrations| migrations.node_drain_taint_key.as_deref());
            node.map_or(Ok(()), |node| evacuation::check(&node, taint.unwrap_or(DRAIN_TAINT)))?;
        }
        if let Some(change) = evacuation::cancel(&vmi, &options)? {
            change.apply(&self.client, &call.object(dry_run)).await?;
        }
        Ok(empty_response(StatusCode::OK))
    }

    async fn set_up_session(&self, call: &Call<'_>) -> Answer {
        ready::sev_gate(&self.configuration.now())?;
        let (options, dry_run) = call.options()?;
        sev::check(&options)?;
        let vmi = self.instance(call).await?;
        sev::set_up(&vmi, &options)?.apply(&self.client, &call.object(dry_run)).await?;
        Ok(accepted())
    }

    async fn graph_of_machine(&self, call: &Call<'_>) -> Answer {
        self.graph_gate()?;
        let vm = self.machine(call).await?;
        let options = decode(&call.body)?;
        let graph = graph::of_machine(&vm, &self.graph_facts(call).await?, &options)?;
        Ok(json_response(StatusCode::OK, &graph))
    }

    async fn graph_of_instance(&self, call: &Call<'_>) -> Answer {
        self.graph_gate()?;
        let vmi = self.instance(call).await?;
        let options = decode(&call.body)?;
        let graph = graph::of_instance(&vmi, &self.graph_facts(call).await?, &options)?;
        Ok(json_response(StatusCode::OK, &graph))
    }

    fn graph_gate(&self) -> Result<(), Failure> {
        if self.configuration.now().enabled(Gate::ObjectGraph) {
            return Ok(());
        }
        Err(Failure::bad_request("ObjectGraph feature gate not enabled: Unable to return object graph."))
    }

    async fn graph_facts(&self, call: &Call<'_>) -> Result<Facts, Failure> {
        let namespace = &call.matched.namespace;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
        let launchers = ListParams::default().labels(&format!("{}={}", labels::APP, app::LAUNCHER));
        let of_machine =
            ListParams::default().labels(&format!("{}={}", labels::PERSISTENT_STATE_FOR, call.matched.name));
        let (pods, claims) = tokio::join!(pods.list(&launchers), claims.list(&of_machine));
        Ok(Facts {
            pods: pods.map_err(Failure::internal)?.items,
            state_claims: claims.map_err(Failure::internal)?.items,
        })
    }

    /// The machine in the body, with all that it refers to written out.
    async fn expand_given(&self, call: &Call<'_>) -> Answer {
        let namespace = &call.matched.namespace;
        if call.body.trim_ascii().is_empty() {
            return Err(Failure::bad_request("empty request body"));
        }
        let wrong = |error: String| {
            Failure::bad_request(format!("Can not unmarshal Request body to struct, error: {error}"))
        };
        let mut raw: Value = serde_json::from_slice(&call.body).map_err(|error| wrong(error.to_string()))?;
        let mut problems = Problems::default();
        match KINDS.iter().find(|kind| kind.name == "VirtualMachine") {
            Some(kind) if raw.is_object() => check_schema(kind, &mut raw, &mut problems),
            _ => return Err(wrong("it is not an object".into())),
        }
        let vm: Option<VirtualMachine> = decode_object(&raw, &mut problems);
        let (Some(mut vm), true) = (vm, problems.is_empty()) else {
            let causes = problems.into_iter().map(|problem| (problem.field, problem.message));
            return Err(Failure::bad_request("Object is not a valid VirtualMachine").because(causes));
        };
        if vm.metadata.namespace.as_ref().is_some_and(|own| !own.is_empty() && own != namespace) {
            return Err(Failure::bad_request(format!("VM namespace must be empty or {namespace}")));
        }
        vm.metadata.namespace = Some(namespace.clone());
        self.expand(&vm, Failure::bad_request).await
    }

    /// A machine with all that it refers to written out.
    async fn expand(&self, vm: &VirtualMachine, failed: impl Fn(String) -> Failure) -> Answer {
        let config = self.configuration.now();
        let expanded = self.cluster.judge(|objects| {
            let devices = |spec: &mut _| {
                disks::add_missing(spec);
                network::add_default(&config, spec)
            };
            expand::into_vm(objects, vm, devices, |spec| default_instance_spec(&config, spec))
        });
        match expanded.await {
            Ok(Ok(vm)) => {
                let vm = serde_json::to_value(&vm).map_err(Failure::internal)?;
                Ok(json_response(StatusCode::OK, &vm))
            }
            Ok(Err(problems)) => {
                let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
                Err(failed(words.join("; ")))
            }
            Err(error) => Err(Failure::internal(error)),
        }
    }
}
