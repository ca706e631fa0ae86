//! What a typical instance costs in admission: defaults and verdict, and the whole way of a review.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_admission::review::{Incoming, Steps, Surroundings, answer};
use kubevirt_admission::{
    ClusterConfig, Context, KnownObjects, Operation, OwnAccounts, Request, User, mutate, validate,
};
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};
use uuid::Uuid;

/// An instance as people write them: disks, an interface, cloud-init, limits.
fn typical() -> Value {
    serde_json::from_str(include_str!("typical.json")).expect("an instance")
}

fn admission(criterion: &mut Criterion) {
    let config = ClusterConfig::default();
    let objects = KnownObjects::default();
    let own_accounts = OwnAccounts::of_installation("kubevirt");
    let now = Time("2026-01-02T03:04:05Z".parse().expect("a time"));
    let fresh_uuid = || Uuid::from_u128(7);

    let vmi: VirtualMachineInstance = serde_json::from_value(typical()).expect("an instance");
    let request = Request {
        operation: Operation::Create,
        namespace: "default".into(),
        name: "web".into(),
        subresource: String::new(),
        user: User { name: "alice".into(), ..User::default() },
        dry_run: false,
    };
    let cx = Context {
        request: &request,
        config: &config,
        objects: &objects,
        own_accounts: &own_accounts,
        now: now.clone(),
        fresh_uuid: &fresh_uuid,
    };
    criterion.bench_function("mutate and validate a typical VMI", |bencher| {
        bencher.iter(|| {
            let mut vmi = vmi.clone();
            let refused = mutate::vmi::apply(&cx, &mut vmi, None);
            let problems = validate::vmi::check(&cx, &vmi, None);
            assert!(refused.is_empty() && problems.is_empty());
            black_box(vmi)
        });
    });

    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "namespace": "default",
            "kind": { "group": "kubevirt.io", "version": "v1", "kind": "VirtualMachineInstance" },
            "object": typical(),
        },
    });
    let bytes = review.to_string().into_bytes();
    let surroundings = Surroundings {
        config: &config,
        objects: &objects,
        own_accounts: &own_accounts,
        now,
        fresh_uuid: &fresh_uuid,
    };
    criterion.bench_function("answer a review of a typical VMI", |bencher| {
        bencher.iter(|| {
            let incoming = Incoming::parse(&bytes).expect("a review");
            black_box(answer(&incoming, &surroundings, Steps::Both).to_review().to_string())
        });
    });
}

criterion_group!(benches, admission);
criterion_main!(benches);
