//! How to move, from what was asked for: what QEMU is told, and when to lose patience.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::quantity::QuantityExt;
use kubevirt_launcher_rpc::migration::MigrationOptions;
use kubevirt_qemu::migration::{Capability, Parameters, Settings};

use super::pace::Limits;
use crate::error::CommandError;

/// The longest pause of a guest that is fine if nothing else is said, in milliseconds.
const USUAL_DOWNTIME: u64 = 300;
/// The longest pause that QEMU can be told, in milliseconds.
const LONGEST_DOWNTIME: u64 = 2_000_000;

/// Reads the options of a migration; none at all are fine.
pub(super) fn read(json: &[u8]) -> Result<MigrationOptions, CommandError> {
    if json.is_empty() {
        return Ok(MigrationOptions::default());
    }
    serde_json::from_slice(json)
        .map_err(|error| CommandError::CannotMigrate(format!("the options cannot be read: {error}")))
}

/// Bytes a second; 0 for no limit.
pub(super) fn bandwidth(options: &MigrationOptions) -> Result<u64, CommandError> {
    let text = options.bandwidth.trim();
    if text.is_empty() {
        return Ok(0);
    }
    let bytes = Quantity(text.to_owned()).bytes().ok().and_then(|bytes| u64::try_from(bytes).ok());
    bytes.ok_or_else(|| CommandError::CannotMigrate(format!("the bandwidth {text:?} is no amount of bytes")))
}

/// What QEMU is told on both sides. `known` is what this QEMU can; `disks` says whether disks are copied too.
pub(super) fn settings(
    options: &MigrationOptions,
    known: &BTreeSet<Capability>,
    disks: bool,
) -> Result<Settings, CommandError> {
    let bandwidth = bandwidth(options)?;
    let mut capabilities = BTreeSet::new();
    let mut parameters = Parameters {
        max_bandwidth: Some(bandwidth),
        downtime_limit: Some(match (downtime(options), &options.stall_detector_options) {
            // The longer pause is for a guest that has stalled.
            (asked, Some(_)) => asked.min(USUAL_DOWNTIME),
            (asked, None) => asked,
        }),
        ..Parameters::default()
    };
    // The target must not lay hands on shared disks before the machine is its own.
    if known.contains(&Capability::LateBlockActivate) {
        capabilities.insert(Capability::LateBlockActivate);
    }
    if disks {
        // The copies are cut off from the guest's disks at the moment when it stands still.
        capabilities.insert(Capability::PauseBeforeSwitchover);
    }
    if options.allow_auto_converge {
        capabilities.insert(Capability::AutoConverge);
    }
    if options.allow_post_copy {
        // Which excludes several connections.
        capabilities.insert(Capability::PostcopyRam);
        return Ok(Settings { capabilities, parameters });
    }
    let compression = compression(options);
    let threads = options.parallel_migration_threads.or(compression.map(|_| 1));
    if let Some(threads) = threads {
        capabilities.insert(Capability::Multifd);
        parameters.multifd_channels = Some(u8::try_from(threads.clamp(1, 255)).unwrap_or(u8::MAX));
        parameters.multifd_compression = Some(compression.unwrap_or("none").to_owned());
    }
    Ok(Settings { capabilities, parameters })
}

/// The longest pause of the guest that is fine, in milliseconds.
pub(super) fn downtime(options: &MigrationOptions) -> u64 {
    match options.max_downtime_ms {
        0 => USUAL_DOWNTIME,
        asked => asked.min(LONGEST_DOWNTIME),
    }
}

fn compression(options: &MigrationOptions) -> Option<&'static str> {
    match options.compression.as_deref() {
        Some("zstd") => Some("zstd"),
        None | Some("" | "none") => None,
        Some(other) => {
            tracing::warn!(compression = other, "this compression is not known, the migration goes without");
            None
        }
    }
}

/// When to lose patience with a migration of so many bytes.
pub(super) fn limits(options: &MigrationOptions, bytes: u64) -> Limits {
    let seconds = |seconds: i64| u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
    let size = bytes.div_ceil(1 << 30).max(1);
    Limits {
        completion: seconds(options.completion_timeout_per_gib)
            .map(|each| Duration::from_secs(each.saturating_mul(size))),
        progress: seconds(options.progress_timeout).map(Duration::from_secs),
        may_disrupt: options.allow_workload_disruption,
        may_postcopy: options.allow_post_copy,
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_launcher_rpc::migration::StallDetectorOptions;

    use super::*;

    fn options(change: impl FnOnce(&mut MigrationOptions)) -> MigrationOptions {
        let mut options = MigrationOptions::default();
        change(&mut options);
        options
    }

    #[test]
    fn options_become_settings() {
        use Capability::{AutoConverge, LateBlockActivate, Multifd, PauseBeforeSwitchover, PostcopyRam};
        let known = BTreeSet::from([LateBlockActivate]);
        let cases: [(MigrationOptions, bool, &[Capability]); 7] = [
            (options(|_| {}), false, &[LateBlockActivate]),
            (options(|_| {}), true, &[LateBlockActivate, PauseBeforeSwitchover]),
            (options(|o| o.allow_auto_converge = true), false, &[LateBlockActivate, AutoConverge]),
            (options(|o| o.allow_post_copy = true), false, &[LateBlockActivate, PostcopyRam]),
            (options(|o| o.parallel_migration_threads = Some(8)), false, &[LateBlockActivate, Multifd]),
            (options(|o| o.compression = Some("zstd".into())), false, &[LateBlockActivate, Multifd]),
            (
                options(|o| {
                    o.allow_post_copy = true;
                    o.parallel_migration_threads = Some(8);
                }),
                false,
                &[LateBlockActivate, PostcopyRam],
            ),
        ];
        for (options, disks, expected) in cases {
            let told = settings(&options, &known, disks).unwrap();
            assert_eq!(told.capabilities, expected.iter().cloned().collect(), "{options:?}");
        }
    }

    #[test]
    fn options_become_parameters() {
        let told =
            |options: MigrationOptions| settings(&options, &BTreeSet::new(), false).unwrap().parameters;
        let plain = told(options(|_| {}));
        assert_eq!((plain.max_bandwidth, plain.downtime_limit), (Some(0), Some(USUAL_DOWNTIME)));
        assert_eq!((plain.multifd_channels, plain.multifd_compression), (None, None));
        let limited = told(options(|o| {
            o.bandwidth = "64Mi".into();
            o.max_downtime_ms = 50;
        }));
        assert_eq!((limited.max_bandwidth, limited.downtime_limit), (Some(64 << 20), Some(50)));
        let patient = |stall: Option<StallDetectorOptions>| {
            told(options(|o| {
                o.max_downtime_ms = 900;
                o.stall_detector_options = stall;
            }))
        };
        assert_eq!(patient(None).downtime_limit, Some(900));
        assert_eq!(patient(Some(StallDetectorOptions::default())).downtime_limit, Some(USUAL_DOWNTIME));
        let wide = told(options(|o| {
            o.parallel_migration_threads = Some(1000);
            o.compression = Some("zstd".into());
        }));
        assert_eq!((wide.multifd_channels, wide.multifd_compression.as_deref()), (Some(255), Some("zstd")));
        let odd = told(options(|o| o.compression = Some("magic".into())));
        assert_eq!(odd.multifd_compression, None);
        assert!(settings(&options(|o| o.bandwidth = "fast".into()), &BTreeSet::new(), false).is_err());
        assert!(settings(&options(|o| o.bandwidth = "-1".into()), &BTreeSet::new(), false).is_err());
    }

    #[test]
    fn patience_grows_with_the_machine() {
        let asked = options(|o| {
            o.completion_timeout_per_gib = 150;
            o.progress_timeout = 10;
        });
        for (bytes, seconds) in [(0, 150), (1, 150), (1 << 30, 150), ((1 << 30) + 1, 300), (8 << 30, 1200)] {
            assert_eq!(limits(&asked, bytes).completion, Some(Duration::from_secs(seconds)), "{bytes}");
        }
        assert_eq!(limits(&asked, 0).progress, Some(Duration::from_secs(10)));
        let none = limits(&options(|o| o.progress_timeout = -1), 1 << 30);
        assert_eq!((none.completion, none.progress), (None, None));
    }

    #[test]
    fn options_are_read_and_may_be_missing() {
        assert_eq!(read(b"").unwrap(), MigrationOptions::default());
        assert!(read(br#"{"AllowPostCopy":true}"#).unwrap().allow_post_copy);
        assert!(matches!(read(b"[]["), Err(CommandError::CannotMigrate(_))));
    }
}
