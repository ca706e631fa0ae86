use std::ffi::OsString;

use super::*;
use crate::commands::Command;
use crate::program::Program;

fn plan(line: &str) -> Result<(Plan, Vec<String>), String> {
    let words = ["virtctl", "image-upload"].into_iter().chain(line.split_whitespace()).map(OsString::from);
    let cli = crate::parse(&Program::called("virtctl".as_ref()), &words.collect::<Vec<_>>());
    let Command::ImageUpload(arguments) = cli.map_err(|error| error.to_string())?.command else {
        panic!("{line} uploads nothing")
    };
    of(&arguments).map_err(|error| error.to_string())
}

#[test]
fn uploads_have_defaults() {
    let (plan, warnings) = plan("dv a --image-path f").unwrap();
    assert_eq!((plan.kind, plan.name.as_str(), plan.archive), (Kind::DataVolume, "a", false));
    assert_eq!((plan.retries, plan.wait, plan.size), (5, Duration::from_secs(300), None));
    assert!(warnings.is_empty() && plan.labels.is_empty() && plan.proxy.is_none());
}

#[test]
fn every_flag_counts() {
    let (all, _) = plan(
        "PVC a --archive-path f --size 10Gi --storage-class s --access-mode ReadWriteMany --volume-mode filesystem \
         --insecure --uploadproxy-url u --wait-secs 7 --retry 3 --force-bind --datasource --default-instancetype i \
         --default-instancetype-kind ik --default-preference p --default-preference-kind pk",
    )
    .unwrap();
    assert_eq!((all.kind, all.archive, all.volume_mode), (Kind::Claim, true, Some("Filesystem")));
    assert_eq!((all.size, all.storage_class.as_deref()), (Some(Quantity("10Gi".into())), Some("s")));
    assert_eq!((all.access_mode.as_deref(), all.proxy.as_deref()), (Some("ReadWriteMany"), Some("u")));
    assert!(all.insecure && all.force_bind && all.data_source && all.labels.len() == 4);
    assert_eq!((all.wait, all.retries), (Duration::from_secs(7), 3));
    let (existing, warnings) = plan("dv a --image-path f --no-create").unwrap();
    assert!(existing.no_create && warnings.is_empty());
    let (existing, warnings) = plan("dv a --archive-path f --no-create --volume-mode filesystem").unwrap();
    assert!(existing.no_create);
    assert_eq!(warnings, ["Warning: without effect with --no-create: --volume-mode"]);
}

#[test]
fn older_flags_still_work() {
    let (older, warnings) = plan("--pvc-name a --pvc-size 1Gi --block-volume --image-path f").unwrap();
    assert_eq!((older.kind, older.name.as_str(), older.volume_mode), (Kind::Claim, "a", Some("Block")));
    assert_eq!(older.size, Some(Quantity("1Gi".into())));
    assert_eq!(warnings.len(), 3);
    assert!(plan("dv a --image-path f --size 1Gi --pvc-size 1Gi").is_ok());
}

#[test]
fn what_does_not_go_together_is_named() {
    for (line, problem) in [
        ("dv a --size 1Gi --pvc-size 2Gi --image-path f", "--pvc-size and --size can not be specified"),
        ("dv a --pvc-name b --image-path f", "cannot use --pvc-name and args"),
        ("dv --image-path f", "expecting two args"),
        ("--image-path f", "expecting two args"),
        ("vm a --image-path f", "invalid resource type vm"),
        (
            "dv a --image-path f --volume-mode filesystem --block-volume",
            "incompatible --volume-mode 'filesystem'",
        ),
        ("dv a --image-path f --volume-mode tape", "Invalid volume mode 'tape'"),
        ("dv a", "either image-path or archive-path must be provided"),
        ("dv a --image-path f --archive-path g", "provide only one"),
        ("dv a --archive-path f --volume-mode block", "In archive upload the volume mode"),
        ("dv a --archive-path f --block-volume", "In archive upload the volume mode"),
        ("dv a --image-path f --size big", "validation failed for size=big"),
        ("dv a --image-path f --size 0", "validation failed for size=0"),
        ("dv a --image-path f --access-mode ReadOnlyMany", "cannot upload to a readonly volume"),
        ("dv a --image-path f --default-instancetype-kind k", "--default-instancetype must be provided"),
        ("dv a --image-path f --default-preference-kind k", "--default-preference must be provided"),
        ("dv a --image-path f --no-create --default-preference p", "cannot be used with --no-create"),
        ("dv a b --image-path f", "unexpected argument 'b'"),
    ] {
        let error = plan(line).expect_err(line);
        assert!(error.contains(problem), "{line}: {error}");
    }
}
