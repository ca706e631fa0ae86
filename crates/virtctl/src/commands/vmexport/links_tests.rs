use serde_json::{Value, json};

use super::*;

fn export(change: impl FnOnce(&mut Value)) -> VirtualMachineExport {
    let links = |host: &str| {
        json!({
            "cert": "PEM",
            "volumes": [
                { "name": "a", "formats": [
                    { "format": "raw", "url": format!("https://{host}/a.img") },
                    { "format": "gzip", "url": format!("https://{host}/a.img.gz") },
                ] },
                { "name": "b", "formats": [{ "format": "raw", "url": format!("https://{host}/b.img") }] },
                { "name": "c", "formats": [
                    { "format": "dir", "url": format!("https://{host}/c/") },
                    { "format": "tar.gz", "url": format!("https://{host}/c.tar.gz") },
                ] },
                { "name": "d", "formats": [{ "format": "dir", "url": format!("https://{host}/d/") }] },
            ],
            "manifests": [{ "type": "all", "url": format!("https://{host}/all") }],
        })
    };
    let mut export = json!({
        "metadata": { "name": "e", "namespace": "ns" },
        "spec": { "source": { "kind": "VirtualMachine", "name": "vm" } },
        "status": { "phase": "Ready", "links": { "internal": links("in:443"), "external": links("out") } },
    });
    change(&mut export);
    serde_json::from_value(export).unwrap()
}

#[test]
fn the_packed_form_is_taken_where_there_is_one() {
    for (name, format, expected) in [
        ("a", Format::Default, Some(("https://out/a.img.gz", true))),
        ("a", Format::Raw, Some(("https://out/a.img.gz", true))),
        ("b", Format::Default, Some(("https://out/b.img", false))),
        ("b", Format::Raw, Some(("https://out/b.img", false))),
        ("b", Format::Gzip, None),
        ("c", Format::Default, Some(("https://out/c.tar.gz", true))),
        ("d", Format::Default, None),
    ] {
        let found = volume(&export(|_| ()), &Route::External, Some(name), format);
        let expected =
            expected.map(|(url, packed)| (url.to_owned(), packed)).ok_or(Error::NoFormat("ns/e".into()));
        assert_eq!(found, expected, "{name} {format:?}");
    }
}

#[test]
fn the_way_decides_about_the_host() {
    let url = |route| volume(&export(|_| ()), &route, Some("a"), Format::Default).unwrap().0;
    assert_eq!(url(Route::Forward(1)), "https://in:443/a.img.gz");
    assert_eq!(url(Route::Service("10.0.0.1:30443".into())), "https://10.0.0.1:30443/a.img.gz");
    let all = manifest(&export(|_| ()), &Route::Service("h".into()), &ExportManifestType::All).unwrap();
    assert_eq!(all, "https://h/all");
}

#[test]
fn what_is_missing_is_named() {
    let error =
        |export, name, format| volume(&export, &Route::External, name, format).unwrap_err().to_string();
    let several = error(export(|_| ()), None, Format::Default);
    assert!(several.ends_with("using the --volume flag: a, b, c, d"), "{several}");
    let unknown = error(export(|_| ()), Some("x"), Format::Default);
    assert_eq!(unknown, "there is no volume x in 'ns/e' VirtualMachineExport; it has a, b, c, d");
    let none = export(|export| export["status"]["links"]["external"]["volumes"] = json!([]));
    assert_eq!(volume(&none, &Route::External, None, Format::Raw), Err(Error::NoVolumes("ns/e".into())));
    let manifest = |kind| manifest(&export(|_| ()), &Route::External, &kind);
    assert_eq!(manifest(ExportManifestType::Oci), Err(Error::NoManifest("ns/e".into(), "OCI".into())));
    let one = export(|export| {
        export["status"]["links"]["external"]["volumes"].as_array_mut().unwrap().truncate(1);
    });
    assert!(volume(&one, &Route::External, None, Format::Default).is_ok());
}

#[test]
fn an_export_is_ready_with_its_links() {
    let of = |change: fn(&mut Value), route: Route| readiness(&export(change), &route);
    assert_eq!(of(|_| (), Route::External), Readiness::Ready);
    let waiting = |words: &str| Readiness::Waiting(format!("waiting for VM Export e {words}"));
    assert_eq!(of(|all| all["status"] = Value::Null, Route::External), waiting("status to be ready..."));
    assert_eq!(
        of(|all| all["status"]["phase"] = "Pending".into(), Route::External),
        waiting("status to be ready...")
    );
    let without = |all: &mut Value| all["status"]["links"] = json!({});
    assert_eq!(of(without, Route::External), waiting("external links to be available..."));
    assert_eq!(of(without, Route::Forward(0)), waiting("internal links to be available..."));
    let skipped = |all: &mut Value| {
        all["status"]["phase"] = "Skipped".into();
        all["status"]["conditions"] =
            json!([{ "type": "Ready", "status": "False", "message": "no volumes" }]);
    };
    assert_eq!(of(skipped, Route::External), Readiness::Never("no volumes".into()));
}
