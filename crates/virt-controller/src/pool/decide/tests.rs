use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A cluster in which everything that is said is done at once.
#[derive(Clone)]
struct World {
    pool: VirtualMachinePool,
    machines: Vec<VirtualMachine>,
    instances: Vec<VirtualMachineInstance>,
    revisions: Vec<ControllerRevision>,
    now: Timestamp,
}

fn pool(spec: Value) -> VirtualMachinePool {
    let mut whole = json!({
        "selector": {"matchLabels": {"app": "desk"}},
        "virtualMachineTemplate": {
            "metadata": {"labels": {"app": "desk"}},
            "spec": {
                "runStrategy": "Always",
                "dataVolumeTemplates": [{"metadata": {"name": "root"}, "spec": {}}],
                "template": {"metadata": {}, "spec": {"domain": {"devices": {}}, "volumes": [
                    {"name": "root", "dataVolume": {"name": "root"}},
                    {"name": "settings", "configMap": {"name": "settings"}},
                    {"name": "user", "cloudInitNoCloud": {"secretRef": {"name": "user"}}},
                ]}},
            },
        },
    });
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let meta = json!({"name": "desk", "namespace": "a", "uid": "pool-uid", "generation": 1});
    serde_json::from_value(json!({"metadata": meta, "spec": whole})).unwrap()
}

impl World {
    fn new(spec: Value) -> Self {
        let now = Timestamp::from_second(1_000_000).unwrap();
        Self { pool: pool(spec), machines: vec![], instances: vec![], revisions: vec![], now }
    }

    fn observe(&self) -> Observed {
        let (vms, vmis) = (self.machines.clone(), self.instances.clone());
        let pool = self.pool.clone();
        let machines = self.machines.iter().cloned().map(Arc::new);
        let (machines, others): (Vec<_>, Vec<_>) =
            machines.partition(|vm| vm.metadata.owner_references.is_some());
        Observed {
            selector: Selector::try_from(pool.spec.selector.clone()).unwrap(),
            machines,
            abandoned: others.into_iter().filter(|vm| is_held(vm)).collect(),
            revisions: self.revisions.iter().cloned().map(Arc::new).collect(),
            pool: Arc::new(pool),
            instance: Box::new(move |name| {
                vmis.iter().find(|vmi| vmi.name_any() == name).cloned().map(Arc::new)
            }),
            taken: Box::new(move |name| vms.iter().any(|vm| vm.name_any() == name)),
        }
    }

    fn plan(&self) -> Plan {
        decide(&self.observe(), self.now)
    }

    /// Decides and does until nothing is left to do.
    fn settle(&mut self) -> usize {
        for round in 0..40 {
            self.live();
            let plan = self.plan();
            if plan.actions.is_empty() && plan.again.is_none() {
                return round;
            }
            for action in plan.actions {
                self.carry_out(action);
            }
        }
        panic!("it does not settle: {:?}", self.plan());
    }

    /// What the other controllers do: machines run, and go when nobody holds them.
    fn live(&mut self) {
        self.machines.retain(|vm| vm.metadata.deletion_timestamp.is_none() || !vm.finalizers().is_empty());
        let names: Vec<_> = self.machines.iter().map(ResourceExt::name_any).collect();
        self.instances.retain(|vmi| names.contains(&vmi.name_any()));
        for vm in &mut self.machines {
            vm.status.get_or_insert_default().conditions =
                serde_json::from_value(json!([{"type": "Ready", "status": "True"}])).unwrap();
            if vm.metadata.deletion_timestamp.is_none()
                && !self.instances.iter().any(|vmi| vmi.metadata.name == vm.metadata.name)
            {
                self.instances.push(instance_of(vm));
            }
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::HoldPool(hold) => {
                self.pool.metadata.finalizers = hold.then(|| vec![finalizers::POOL.to_owned()]);
            }
            Action::KeepRevision(revision) => self.revisions.push(*revision),
            Action::Create(mut vm) => {
                vm.metadata.uid = Some(format!("{}-{}", vm.name_any(), self.revisions.len()));
                vm.metadata.creation_timestamp = Some(Time(self.now));
                self.machines.push(*vm);
            }
            Action::Delete { machine, .. } => {
                self.machine(&machine).metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
            }
            Action::LetGo { machine, .. } => self.machine(&machine).metadata.finalizers = None,
            Action::Release(machine) => {
                let vm = self.machine(&machine);
                vm.metadata.owner_references = None;
                vm.metadata.finalizers = None;
            }
            Action::Update { seen, wanted } => *self.machine(&seen) = *wanted,
            Action::Restart(vmi) => self.instances.retain(|it| it.metadata.name != vmi.metadata.name),
            Action::Relabel { instance, revision } => {
                let vmi = self.instances.iter_mut().find(|it| it.metadata.name == instance.metadata.name);
                let labels = vmi.unwrap().metadata.labels.get_or_insert_default();
                labels.insert(kubevirt_api::names::labels::POOL_REVISION_NAME.to_owned(), revision);
            }
            Action::ForgetRevision(name) => self.revisions.retain(|revision| revision.name_any() != name),
        }
    }

    fn machine(&mut self, like: &VirtualMachine) -> &mut VirtualMachine {
        self.machines.iter_mut().find(|vm| vm.metadata.name == like.metadata.name).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.machines.iter().map(ResourceExt::name_any).collect();
        names.sort();
        names
    }

    fn change(&mut self, edit: impl FnOnce(&mut VirtualMachinePool)) {
        edit(&mut self.pool);
        *self.pool.metadata.generation.get_or_insert_default() += 1;
    }
}

fn instance_of(vm: &VirtualMachine) -> VirtualMachineInstance {
    let template = vm.spec.template.clone();
    let mut vmi = VirtualMachineInstance::new(&vm.name_any(), template.spec.unwrap());
    vmi.metadata.labels = template.metadata.unwrap().labels;
    vmi.status = serde_json::from_value(
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
    )
    .unwrap();
    vmi
}

#[test]
fn machines_are_numbered_and_so_is_what_is_theirs() {
    let naming = json!({"appendIndexToConfigMapRefs": true, "appendIndexToSecretRefs": true});
    let mut world = World::new(json!({"replicas": 2, "nameGeneration": naming}));
    world.settle();
    assert_eq!(world.names(), ["desk-0", "desk-1"]);
    let vm = serde_json::to_value(&world.machines[1]).unwrap();
    assert_eq!(vm["spec"]["dataVolumeTemplates"][0]["metadata"]["name"], "root-1");
    let volumes = &vm["spec"]["template"]["spec"]["volumes"];
    assert_eq!(volumes[0]["dataVolume"]["name"], "root-1");
    assert_eq!(volumes[1]["configMap"]["name"], "settings-1");
    assert_eq!(volumes[2]["cloudInitNoCloud"]["secretRef"]["name"], "user-1");
    assert_eq!(vm["metadata"]["labels"]["kubevirt.io/vm-pool-revision-name"], "desk-1");
    assert_eq!(world.revisions.len(), 1);
}

#[test]
fn scaling_in_follows_the_policy() {
    let policy = json!({"proactive": {"selectionPolicy": {"sortPolicy": "DescendingOrder"}}});
    let mut world = World::new(json!({"replicas": 12, "scaleInStrategy": policy}));
    world.settle();
    world.pool.spec.replicas = Some(10);
    world.settle();
    assert!(!world.names().contains(&"desk-11".to_owned()) && !world.names().contains(&"desk-10".to_owned()));
    // The holes are filled first.
    world.machines.retain(|vm| vm.name_any() != "desk-4");
    world.settle();
    assert!(world.names().contains(&"desk-4".to_owned()));
}

#[test]
fn by_hand_means_by_hand() {
    for strategy in [json!({"unmanaged": {}}), json!({"opportunistic": {}})] {
        let mut world = World::new(json!({"replicas": 3, "scaleInStrategy": strategy}));
        world.settle();
        world.pool.spec.replicas = Some(1);
        world.settle();
        assert_eq!(world.machines.len(), 3);
    }
}

#[test]
fn an_update_restarts_only_as_many_as_may_be_away() {
    let mut world = World::new(json!({"replicas": 4, "maxUnavailable": "25%"}));
    world.settle();
    world.change(|pool| {
        let spec = pool.spec.virtual_machine_template.spec.as_mut().unwrap();
        spec.template.spec.as_mut().unwrap().hostname = Some("new".into());
    });
    for action in world.plan().actions {
        world.carry_out(action);
    }
    let plan = world.plan();
    let restarts = plan.actions.iter().filter(|action| matches!(action, Action::Restart(_))).count();
    assert_eq!((restarts, plan.again.is_some()), (1, true));
    world.settle();
    assert!(world.instances.iter().all(|vmi| vmi.spec.hostname.as_deref() == Some("new")));
    // Only the revision that is in use is kept.
    let kept: Vec<_> = world.revisions.iter().map(ResourceExt::name_any).collect();
    assert_eq!(kept, ["desk-2"]);
}

#[test]
fn what_does_not_concern_the_guest_restarts_nothing() {
    let mut world = World::new(json!({"replicas": 2}));
    world.settle();
    let before = world.instances.clone();
    world.change(|pool| {
        let meta = pool.spec.virtual_machine_template.metadata.as_mut().unwrap();
        meta.annotations = Some([("note".to_owned(), "1".to_owned())].into());
    });
    world.settle();
    assert!(world.machines.iter().all(|vm| vm.annotations().contains_key("note")));
    assert_eq!(before.len(), world.instances.len());
    assert!(world.instances.iter().all(|vmi| revision::of(vmi) == Some("desk-2")));
}

#[test]
fn the_guest_keeps_its_identity() {
    let mut world = World::new(json!({"replicas": 1}));
    world.settle();
    let template = &mut world.machines[0].spec.template;
    template.spec.as_mut().unwrap().domain.firmware =
        serde_json::from_value(json!({"uuid": "u", "serial": "s"})).unwrap();
    world.change(|pool| {
        pool.spec.virtual_machine_template.metadata.as_mut().unwrap().annotations =
            Some([("a".to_owned(), "b".to_owned())].into());
    });
    world.settle();
    let spec = world.machines[0].spec.template.spec.as_ref().unwrap();
    assert_eq!(spec.domain.firmware.as_ref().unwrap().uuid.as_deref(), Some("u"));
}

#[test]
fn machines_that_never_come_up_are_replaced() {
    let mut world = World::new(json!({"replicas": 1, "autohealing": {"startUpFailureThreshold": 2}}));
    world.settle();
    let status = json!({"startFailure": {"consecutiveFailCount": 2}});
    world.machines[0].status = serde_json::from_value(status).unwrap();
    let plan = world.plan();
    assert!(matches!(plan.actions[..], [Action::Delete { foreground: false, .. }]), "{plan:?}");
}

#[test]
fn a_machine_in_trouble_is_looked_at_when_its_time_is_over() {
    let healing = json!({"minFailingToStartDuration": "3m"});
    let mut world = World::new(json!({"replicas": 2, "autohealing": healing}));
    world.settle();
    let trouble = |word: &str, since: i64| {
        let since = Timestamp::from_second(1_000_000 + since).unwrap().to_string();
        let ready = json!({"type": "Ready", "status": "False", "lastTransitionTime": since});
        serde_json::from_value(json!({"printableStatus": word, "conditions": [ready]})).unwrap()
    };
    let cases = [
        (("CrashLoopBackOff", -60), ("ErrImagePull", -100), 0, Some(80)),
        (("CrashLoopBackOff", -60), ("Starting", -600), 0, Some(120)),
        (("Starting", -60), ("Running", -60), 0, None),
        (("ErrorUnschedulable", -180), ("ErrorPvcNotFound", -179), 1, Some(1)),
        // By another clock it has not begun.
        (("DataVolumeError", 60), ("Running", 0), 0, Some(180)),
    ];
    for (first, second, deleted, again) in cases {
        world.machines[0].status = Some(trouble(first.0, first.1));
        world.machines[1].status = Some(trouble(second.0, second.1));
        let plan = world.plan();
        assert_eq!(plan.actions.len(), deleted, "{first:?} {second:?}: {plan:?}");
        assert_eq!(plan.again, again.map(Duration::from_secs), "{first:?} {second:?}");
    }
    // The wait does not keep the pool from growing.
    world.machines[0].status = Some(trouble("CrashLoopBackOff", -60));
    world.pool.spec.replicas = Some(3);
    let plan = world.plan();
    assert!(matches!(plan.actions[..], [Action::Create(_)]), "{plan:?}");
    assert_eq!(plan.again, Some(Duration::from_secs(120)));
}

#[test]
fn a_pool_that_goes_lets_its_machines_go_first() {
    let mut world = World::new(json!({"replicas": 2}));
    world.settle();
    world.pool.metadata.deletion_timestamp = Some(Time(world.now));
    let plan = world.plan();
    assert!(plan.actions.iter().all(|action| matches!(action, Action::LetGo { keep_disks: false, .. })));
    world.settle();
    assert!(world.pool.finalizers().is_empty());
    assert_eq!((world.machines.len(), world.revisions.len()), (2, 0));
}

#[test]
fn machines_that_were_orphaned_first_are_let_go_too() {
    let mut world = World::new(json!({"replicas": 3}));
    world.settle();
    world.machines[0].metadata.owner_references = None;
    world.machines[1].metadata.owner_references = None;
    world.machines[1].metadata.labels = Some([("app".to_owned(), "other".to_owned())].into());
    for goes in [false, true] {
        let mut world = world.clone();
        world.pool.metadata.deletion_timestamp = goes.then_some(Time(world.now));
        world.settle();
        let held: Vec<_> =
            world.machines.iter().filter(|vm| is_held(vm)).map(ResourceExt::name_any).collect();
        // The second may be another pool's.
        let expected: &[&str] = if goes { &["desk-1"] } else { &["desk-1", "desk-2", "desk-3", "desk-4"] };
        assert_eq!(held, expected, "{goes}");
    }
}

#[test]
fn disks_stay_where_the_pool_says_so() {
    let strategy = json!({"proactive": {"statePreservation": "Offline"}});
    let mut world = World::new(json!({"replicas": 1, "scaleInStrategy": strategy}));
    world.settle();
    world.machines[0].metadata.deletion_timestamp = Some(Time(world.now));
    assert!(matches!(world.plan().actions[..], [Action::LetGo { keep_disks: true, .. }]));
    // What makes way for machines with other disks.
    world.machines[0].finalizers_mut().push(FOREGROUND.to_owned());
    assert!(matches!(world.plan().actions[..], [Action::LetGo { keep_disks: false, .. }]));
}

proptest! {
    /// Whatever users do between, the pool comes to rest with as many machines as wanted, all of them current.
    #[test]
    fn it_settles(steps in prop::collection::vec((0..5u8, 0..8i32), 1..8)) {
        let mut world = World::new(json!({"replicas": 3}));
        for (what, number) in steps {
            let some = usize::try_from(number).unwrap();
            match what {
                0 => world.pool.spec.replicas = Some(number),
                1 => world.change(|pool| {
                    let spec = pool.spec.virtual_machine_template.spec.as_mut().unwrap();
                    spec.template.spec.as_mut().unwrap().hostname = Some(number.to_string());
                }),
                2 => if let Some(vm) = world.machines.get_mut(some) {
                    vm.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
                },
                3 => if let Some(vm) = world.machines.get_mut(some) { vm.metadata.labels = None; },
                _ => { world.instances.truncate(some); }
            }
            for action in world.plan().actions { world.carry_out(action); }
        }
        world.settle();
        let ours: Vec<_> = world.machines.iter().filter(|vm| vm.metadata.owner_references.is_some()).collect();
        prop_assert_eq!(ours.len(), usize::try_from(world.pool.spec.replicas.unwrap()).unwrap());
        let current = &world.pool.spec.virtual_machine_template.spec.as_ref().unwrap().template;
        let hostname = |template: &kubevirt_api::vmi::VmiTemplate| template.spec.as_ref().unwrap().hostname.clone();
        for vm in ours {
            prop_assert_eq!(hostname(&vm.spec.template), hostname(current));
        }
    }
}
