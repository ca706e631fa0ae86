//! Whatever flags say, admission takes the machine that they make.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_admission::review::{Incoming, Steps, Surroundings, answer};
use kubevirt_admission::{ClusterConfig, KnownObjects, OwnAccounts};
use kubevirt_api::kubevirt::KubeVirt;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::json;

use super::{Arguments, Inputs, virtual_machine};

/// The objects that the flags below refer to.
fn cluster() -> KnownObjects {
    let mut objects = KnownObjects::default();
    let size = json!({ "cpu": { "guest": 1 }, "memory": { "guest": "1Gi" } });
    for (kind, namespace, spec) in [
        ("VirtualMachineInstancetype", Some("default"), size.clone()),
        ("VirtualMachineClusterInstancetype", None, size),
        ("VirtualMachinePreference", Some("default"), json!({})),
        ("VirtualMachineClusterPreference", None, json!({})),
    ] {
        let object = json!({
            "apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": kind,
            "metadata": { "name": "known", "namespace": namespace }, "spec": spec,
        });
        objects.add(object).unwrap();
    }
    let labels = json!({
        "instancetype.kubevirt.io/default-instancetype": "known",
        "instancetype.kubevirt.io/default-preference": "known",
    });
    objects
        .add(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": { "name": "claim", "namespace": "default", "labels": labels }, "spec": {},
        }))
        .unwrap();
    objects
        .add(json!({
            "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource",
            "metadata": { "name": "ds", "namespace": "default", "labels": labels },
            "spec": { "source": { "pvc": { "name": "claim", "namespace": "default" } } },
        }))
        .unwrap();
    objects
        .add(json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
            "metadata": { "name": "snapshot", "namespace": "default", "labels": labels },
        }))
        .unwrap();
    objects
}

fn verdict(arguments: &Arguments) -> Result<(), String> {
    let mut count = 0;
    let suffix = &mut || {
        count += 1;
        format!("x{count}")
    };
    let inputs = Inputs { namespace: Some("default"), password: Some("1234\n"), suffix };
    let made = virtual_machine(arguments, inputs).map_err(|error| format!("not made: {error}"))?;
    let object = serde_json::to_value(&made.machine).map_err(|error| error.to_string())?;
    let config = ClusterConfig::of(&KubeVirt::default());
    let surroundings = Surroundings {
        config: &config,
        objects: &cluster(),
        own_accounts: &OwnAccounts::of_installation("kubevirt"),
        now: Time(jiff::Timestamp::UNIX_EPOCH),
        fresh_uuid: &uuid::Uuid::nil,
    };
    let review = answer(&Incoming::creation(object.clone()), &surroundings, Steps::Both).to_review();
    if review["response"]["allowed"] == true { Ok(()) } else { Err(format!("{review:#}\n{object:#}")) }
}

fn some_of(all: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    subsequence(all, 0..=all.len()).prop_map(|some| some.into_iter().map(str::to_owned).collect())
}

fn one_of(all: &'static [&'static str]) -> impl Strategy<Value = Option<String>> {
    prop::option::of(select(all).prop_map(str::to_owned))
}

const IMPORTS: &[&str] = &[
    "type:blank,size:1Gi",
    "type:gcs,size:1Gi,url:gs://bucket/object",
    "type:http,size:1Gi,url:http://host/image.qcow2,extraheaders:a: b;c: d",
    "type:imageio,size:1Gi,url:http://host,diskid:1,secretref:s,certconfigmap:c",
    "type:pvc,src:default/claim,bootorder:3",
    "type:registry,size:1Gi,url:docker://image,pullmethod:node",
    "type:s3,size:1Gi,url:http://host/object",
    "type:vddk,size:1Gi,url:https://host,uuid:u,thumbprint:t,secretref:s,backingfile:f",
    "type:snapshot,src:default/snapshot",
    "type:ds,src:ds,name:from-ds",
];

prop_compose! {
    fn arguments()(
        name in prop::option::of("[a-z][a-z0-9-]{0,20}[a-z0-9]"),
        run_strategy in select(&["Always", "manual", "Halted", "Once", "rerunonfailure"][..]),
        termination_grace_period in 0i64..4000,
        size in prop::option::of(prop::bool::ANY),
        volume_containerdisk in some_of(&["src:image:tag,bootorder:1", "src:other,name:named"]),
        volume_pvc in some_of(&["src:claim,bootorder:2", "src:claim,name:again"]),
        volume_import in some_of(IMPORTS),
        preference in one_of(&["known", "virtualmachinepreference/known", "VirtualMachineClusterPreference/known"]),
        instancetype in select(&["known", "virtualmachineinstancetype/known"][..]),
        volume_sysprep in one_of(&["src:answers", "src:answers,type:secret"]),
        user in one_of(&["fedora", "007", "no", "a: b"]),
        ssh_key in some_of(&["ssh-ed25519 AAAA me@host", "ssh-rsa BBBB"]),
        ga_manage_ssh in prop::option::of(prop::bool::ANY),
        password in prop::bool::ANY,
        access in one_of(&["src:keys,user:me", "src:keys,method:nocloud", "type:password,src:words"]),
        network in prop::bool::ANY,
    ) -> Arguments {
        Arguments {
            name,
            run_strategy: run_strategy.to_owned(),
            termination_grace_period,
            memory: (size == Some(false)).then(|| "1Gi".to_owned()),
            instancetype: (size == Some(true)).then(|| instancetype.to_owned()),
            preference,
            volume_containerdisk,
            volume_pvc,
            volume_import,
            volume_sysprep,
            user,
            ssh_key,
            ga_manage_ssh,
            password_file: password.then(Default::default),
            access_cred: access.into_iter().collect(),
            cloud_init_network_data: network.then(|| "dmVyc2lvbjogMg==".to_owned()),
            ..Default::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..Default::default() })]

    #[test]
    fn admission_takes_what_is_made(arguments in arguments()) {
        prop_assert_eq!(verdict(&arguments), Ok(()));
    }
}

#[test]
fn a_password_is_text_to_cloud_init() {
    let arguments = Arguments {
        name: Some("a".into()),
        run_strategy: "Always".into(),
        password_file: Some("given".into()),
        ..Default::default()
    };
    for (password, line) in [
        ("secret\n", "password: secret"),
        ("1234", "password: \"1234\""),
        ("Yes", "password: \"Yes\""),
        ("pass word", "password: pass word"),
        ("a: b", "password: \"a: b\""),
        ("a #b", "password: \"a #b\""),
        ("'quoted'", "password: \"'quoted'\""),
        ("*star", "password: \"*star\""),
        ("tab\there", "password: \"tab\\there\""),
    ] {
        let inputs = Inputs { namespace: None, password: Some(password), suffix: &mut String::new };
        let made = virtual_machine(&arguments, inputs).unwrap();
        let spec = made.machine.spec.template.spec.unwrap();
        let volume = spec.volumes.unwrap().remove(0);
        let data = volume.cloud_init_no_cloud.unwrap().user_data.unwrap();
        assert!(data.contains(&format!("\n{line}\nchpasswd: {{ expire: False }}")), "{data}");
        assert_eq!(made.warnings.len(), 1);
    }
}
