use std::ffi::OsString;

use super::*;
use crate::commands::Command;
use crate::program::Program;

fn arguments(line: &str) -> Result<Arguments, String> {
    let words = ["virtctl", "vmexport"].into_iter().chain(line.split_whitespace()).map(OsString::from);
    let cli = crate::parse(&Program::called("virtctl".as_ref()), &words.collect::<Vec<_>>());
    let Command::Vmexport(arguments) = cli.map_err(|error| error.to_string())?.command else {
        panic!("{line} exports nothing")
    };
    Ok(arguments)
}

/// What a command line asks for, or what is wrong with it.
fn plan(line: &str) -> Result<Plan, String> {
    of(&arguments(line)?).map_err(|error| error.to_string())
}

fn fetched(line: &str) -> Download {
    match plan(&format!("download e {line}")).unwrap() {
        Plan::Download(download) => *download,
        other => panic!("{other:?}"),
    }
}

#[test]
fn exports_are_created_and_deleted() {
    let Plan::Create(new) =
        plan("create e --vm a --ttl 4h --labels a=b,c=d --labels e=f --annotations g=h=i").unwrap()
    else {
        panic!("it creates")
    };
    assert_eq!((new.source.kind.as_str(), new.ttl), ("VirtualMachine", Some(Text("4h".into()))));
    assert_eq!(new.labels.len(), 3);
    assert_eq!(new.annotations["g"], "h=i");
    for (flag, kind) in [
        ("--snapshot", "VirtualMachineSnapshot"),
        ("--pvc", "PersistentVolumeClaim"),
        ("--vmtemplate", "VirtualMachineTemplate"),
    ] {
        let Plan::Create(new) = plan(&format!("CREATE e {flag} a")).unwrap() else { panic!("it creates") };
        assert_eq!(new.source.kind, kind);
    }
    assert_eq!(plan("delete e").unwrap(), Plan::Delete("e".into()));
}

#[test]
fn downloads_have_defaults() {
    let plain = fetched("--output f");
    assert_eq!(plain.what, What::Volume { name: None, format: Format::Default });
    assert_eq!((plain.route, plain.after, plain.retries), (Route::External, After::DeleteOwn, 0));
    assert_eq!((plain.new, plain.readiness, plain.output), (None, READINESS, Output::File("f".into())));
}

#[test]
fn every_flag_of_a_download_counts() {
    let all = fetched(
        "--vm a --volume v --format raw --insecure --keep-vme --ttl 1h --service-url https://h:1/x --retry 3 \
         --readiness-timeout 5m --output - --labels a=b",
    );
    assert_eq!(all.what, What::Volume { name: Some("v".into()), format: Format::Raw });
    assert_eq!((all.route, all.after, all.retries), (Route::Service("h:1".into()), After::Keep, 3));
    assert_eq!((all.readiness, all.output, all.insecure), (Duration::from_secs(300), Output::Stdout, true));
    assert!(all.new.is_some_and(|new| new.ttl.is_some() && new.labels.len() == 1));
    assert_eq!(fetched("--output f --port-forward").route, Route::Forward(0));
    assert_eq!(fetched("--output f --port-forward --local-port 5410").route, Route::Forward(5410));
    assert_eq!(fetched("--output f --delete-vme").after, After::Delete);
    assert_eq!(fetched("--output f --format oci").what, What::Oci);
    let manifest = fetched("--manifest --include-secret --manifest-output-format JSON");
    assert_eq!(
        (manifest.what, manifest.output),
        (What::Manifest { json: true, secret: true }, Output::Stdout)
    );
}

#[test]
fn flags_for_something_else_change_nothing() {
    for (line, expected) in [
        ("create e --vm a --ttl 1h --labels a=b", ""),
        ("create e --vm a --manifest --readiness-timeout 5m", "readiness-timeout manifest"),
        ("delete e --ttl 1h --include-secret", "ttl include-secret"),
        ("download e --output f --volume v --retry 2 --format raw", ""),
        ("download e --output f --ttl 1h --labels a=b", "labels ttl"),
        ("download e --output f --vm a --ttl 1h --labels a=b", ""),
        ("download e --output f --local-port 1", "local-port"),
        ("download e --output f --port-forward --local-port 1", ""),
        ("download e --output f --include-secret", "include-secret"),
        ("download e --output f --format oci --manifest-output-format json", "manifest-output-format"),
        ("download e --manifest --include-secret --format raw", "format"),
    ] {
        let arguments = arguments(line).unwrap();
        assert_eq!(idle(&arguments, &of(&arguments).unwrap()).join(" "), expected, "{line}");
    }
}

#[test]
fn what_does_not_go_together_is_named() {
    for (line, problem) in [
        ("copy e", "invalid function 'copy'"),
        ("create e", "need to specify export kind"),
        ("create e --vm a --output f", "the '--output' flag is incompatible with 'create'"),
        ("create e --vm a --volume v", "the '--volume' flag is incompatible with 'create'"),
        ("create e --vm a --insecure", "the '--insecure' flag is incompatible with 'create'"),
        ("create e --vm a --keep-vme", "the '--keep-vme' flag is incompatible with 'create'"),
        ("create e --vm a --delete-vme", "the '--delete-vme' flag is incompatible with 'create'"),
        ("create e --vm a --port-forward", "the '--port-forward' flag is incompatible with 'create'"),
        ("create e --vm a --local-port 1", "the '--local-port' flag is incompatible with 'create'"),
        ("create e --vm a --format raw", "the '--format' flag is incompatible with 'create'"),
        ("create e --vm a --service-url h", "the '--service-url' flag is incompatible with 'create'"),
        ("create e --vm a --retry 1", "the '--retry' flag is incompatible with 'create'"),
        ("create e --vm a --ttl soon", "--ttl is not a valid value"),
        ("create e --vm a --ttl 0s", "--ttl is not a valid value"),
        ("create e --vm a --labels a", "--labels is not a valid value"),
        ("create e --vm a --annotations =a", "--annotations is not a valid value"),
        ("delete e --vm a", "should not specify export kind"),
        ("delete e --labels a=b", "the '--labels' flag is incompatible with 'delete'"),
        ("delete e --annotations a=b", "the '--annotations' flag is incompatible with 'delete'"),
        ("delete e --readiness-timeout 1s", "the '--readiness-timeout' flag is incompatible with 'delete'"),
        ("download e", "Binary output can mess up your terminal"),
        (
            "download e --output f --format zip",
            "--format is not a valid value, acceptable values are gzip/raw/oci",
        ),
        (
            "download e --output f --retry -1",
            "--retry is not a valid value, acceptable values are positive integers",
        ),
        ("download e --output f --port-forward --local-port x", "--local-port is not a valid value"),
        ("download e --output f --port-forward --local-port 65536", "--local-port is not a valid value"),
        ("download e --output f --port-forward --service-url h", "the '--service-url' flag is incompatible"),
        ("download e --output f --readiness-timeout x", "--readiness-timeout is not a valid value"),
        (
            "download e --output f --format oci --volume v",
            "the '--volume' flag is incompatible with '--format=oci'",
        ),
        (
            "download e --output f --format oci --manifest",
            "the '--manifest' flag is incompatible with '--format=oci'",
        ),
        (
            "download e --output f --format oci --pvc p",
            "the '--pvc' flag is incompatible with '--format=oci'",
        ),
        ("download e --manifest --volume v", "the '--volume' flag is incompatible with '--manifest'"),
        ("download e --manifest --pvc p", "the '--pvc' flag is incompatible with '--manifest'"),
        ("download e --manifest --manifest-output-format xml", "acceptable values are json/yaml"),
        ("download e --output f --vm a --pvc b", "cannot be used with"),
        ("download e --output f --keep-vme --delete-vme", "cannot be used with"),
        ("download", "required arguments were not provided"),
    ] {
        let error = plan(line).expect_err(line);
        assert!(error.contains(problem), "{line}: {error}");
    }
}
