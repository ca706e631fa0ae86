use serde_json::{Value, json};

use super::*;

fn arguments(kind: &str) -> Arguments {
    Arguments {
        kind: kind.to_owned(),
        target: "a".to_owned(),
        name: "service".to_owned(),
        service_type: "ClusterIP".to_owned(),
        ..Default::default()
    }
}

fn spec() -> VirtualMachineInstanceSpec {
    serde_json::from_value(json!({
        "domain": { "devices": { "interfaces": [
            { "name": "other", "ports": [{ "port": 1 }] },
            { "name": "pod", "ports": [{ "port": 80, "protocol": "TCP" }, { "port": 53, "protocol": "UDP" }] },
        ] } },
        "networks": [{ "name": "other", "multus": { "networkName": "x" } }, { "name": "pod", "pod": {} }],
    }))
    .unwrap()
}

fn owner() -> OwnerReference {
    OwnerReference {
        name: "a".into(),
        controller: Some(true),
        block_owner_deletion: Some(true),
        ..Default::default()
    }
}

fn service(arguments: &Arguments, spec: Option<&VirtualMachineInstanceSpec>) -> Result<Value, Error> {
    let behind = Behind::machine("a", Some(owner()), spec);
    Ok(serde_json::to_value(Wanted::of(arguments)?.service(&behind, "ns")?.spec).unwrap())
}

#[test]
fn a_port_may_be_given_or_found() {
    let found = service(&arguments("vm"), Some(&spec())).unwrap();
    let expected = json!({
        "type": "ClusterIP", "selector": { "vmi.kubevirt.io/id": "a" },
        "ports": [
            { "name": "port-1", "protocol": "TCP", "port": 80 }, { "name": "port-2", "protocol": "UDP", "port": 53 },
        ],
    });
    assert_eq!(found, expected);
    let given = Arguments {
        port: Some(22),
        protocol: Some("udp".into()),
        target_port: Some("2222".into()),
        port_name: Some("ssh".into()),
        service_type: "nodeport".into(),
        cluster_ip: Some("None".into()),
        external_ip: Some("1.2.3.4".into()),
        ip_family: Some("ipv6,ipv4".into()),
        ..arguments("VMIs")
    };
    let expected = json!({
        "type": "NodePort", "selector": { "vmi.kubevirt.io/id": "a" }, "clusterIP": "None", "externalIPs": ["1.2.3.4"],
        "ports": [{ "name": "ssh", "protocol": "UDP", "port": 22, "targetPort": 2222 }],
        "ipFamilies": ["IPv6", "IPv4"], "ipFamilyPolicy": "PreferDualStack",
    });
    assert_eq!(service(&given, Some(&spec())).unwrap(), expected);
    let named = Arguments { port: Some(80), target_port: Some("web".into()), ..arguments("vm") };
    assert_eq!(service(&named, None).unwrap()["ports"][0]["targetPort"], "web");
}

#[test]
fn the_machine_owns_the_service() {
    let behind = Behind::machine("a", Some(owner()), Some(&spec()));
    let made = Wanted::of(&arguments("vm")).unwrap().service(&behind, "ns").unwrap();
    let owners = made.metadata.owner_references.unwrap();
    assert_eq!((owners[0].controller, owners[0].block_owner_deletion), (Some(true), Some(false)));
    assert_eq!(made.metadata.namespace.as_deref(), Some("ns"));
}

#[test]
fn mistakes_are_named() {
    let wrong = |change: fn(&mut Arguments)| {
        let mut all = arguments("vm");
        change(&mut all);
        service(&all, None).unwrap_err()
    };
    assert_eq!(wrong(|_| ()), Error::NoPorts);
    assert_eq!(wrong(|all| all.kind = "pod".into()), Error::Kind("pod".into()));
    assert_eq!(wrong(|all| all.protocol = Some("sctp".into())), Error::Protocol("sctp".into()));
    assert_eq!(
        wrong(|all| all.service_type = "externalname".into()),
        Error::ExternalName("externalname".into())
    );
    assert_eq!(wrong(|all| all.service_type = "x".into()), Error::Type("x".into()));
    assert_eq!(wrong(|all| all.ip_family = Some("ipv5".into())), Error::Families("ipv5".into()));
    assert_eq!(wrong(|all| all.ip_family_policy = Some("any".into())), Error::Policy("any".into()));
    assert_eq!(wrong(|all| all.port = Some(65536)), Error::Port(65536));
    assert_eq!(wrong(|all| all.port = Some(-1)), Error::Port(-1));
    assert_eq!(wrong(|all| all.target_port = Some("1".into())), Error::NoPorts);
}

#[test]
fn flags_about_a_port_have_no_effect_without_one() {
    let about = Arguments {
        protocol: Some("udp".into()),
        target_port: Some("8080".into()),
        port_name: Some("web".into()),
        ..arguments("vm")
    };
    assert_eq!(service(&about, Some(&spec())), service(&arguments("vm"), Some(&spec())));
    for (arguments, expected) in [
        (about.clone(), vec!["--protocol", "--target-port", "--port-name"]),
        (Arguments { port_name: Some(String::new()), ..arguments("vm") }, vec![]),
        (Arguments { port: Some(80), ..about }, vec![]),
    ] {
        assert_eq!(Wanted::of(&arguments).unwrap().without_port, expected);
    }
}

#[test]
fn replica_sets_need_plain_labels() {
    let selector = |value: Value| serde_json::from_value::<LabelSelector>(value).unwrap();
    let behind =
        |value: Value| Behind::replica_set(&selector(value), None, None).map(|behind| behind.selector);
    assert_eq!(behind(json!({})).unwrap_err(), Error::NoLabels);
    let labels = json!({ "matchLabels": { "a": "b" } });
    assert_eq!(behind(labels).unwrap(), BTreeMap::from([("a".to_owned(), "b".to_owned())]));
    let more =
        json!({ "matchLabels": { "a": "b" }, "matchExpressions": [{ "key": "x", "operator": "Exists" }] });
    assert_eq!(behind(more).unwrap_err(), Error::Expressions);
}

#[test]
fn every_family_and_policy_is_understood() {
    for (text, expected, policy_of) in [
        ("", vec![], None),
        ("IPv4", vec!["IPv4"], None),
        ("ipv6", vec!["IPv6"], None),
        ("IPv4,IPv6", vec!["IPv4", "IPv6"], Some("PreferDualStack")),
    ] {
        assert_eq!(families(text).unwrap(), expected);
        assert_eq!(policy("", expected.len()).unwrap(), policy_of);
    }
    for word in ["SingleStack", "preferdualstack", "RequireDualStack"] {
        assert!(policy(word, 0).unwrap().unwrap().eq_ignore_ascii_case(word));
    }
}

#[test]
fn a_long_name_ends_in_a_hash() {
    assert_eq!(id("short"), "short");
    let long = id(&"a".repeat(70));
    assert_eq!(long, format!("{}-ed6c69d9", "a".repeat(54)));
}
