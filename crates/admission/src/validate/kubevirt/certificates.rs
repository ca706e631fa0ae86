//! How long the certificates of the installation last, and when they are renewed.

use kubevirt_api::duration::Duration;
use kubevirt_api::kubevirt::install::{CertConfig, SelfSignConfiguration};

use crate::{Path, Problems};

const NANOS_PER_HOUR: i128 = 3_600_000_000_000;
/// How long an authority lasts where nothing is set.
const CA_LIFE: i128 = 7 * 24 * NANOS_PER_HOUR;
/// How long a server's certificate lasts where nothing is set.
const SERVER_LIFE: i128 = 24 * NANOS_PER_HOUR;

/// Checks the lifetimes; all of it is about the whole.
pub fn check(certificates: &SelfSignConfiguration, problems: &mut Problems) {
    let old_way = [
        &certificates.ca_rotate_interval,
        &certificates.cert_rotate_interval,
        &certificates.ca_overlap_interval,
    ];
    if old_way.iter().any(|set| set.is_some()) && (certificates.ca.is_some() || certificates.server.is_some())
    {
        problems.not_supported(
            &Path::WHOLE,
            "caRotateInterval, certRotateInterval and caOverlapInterval are deprecated and exclude ca and server",
        );
    }
    let (ca, server) = (certificates.ca.as_ref(), certificates.server.as_ref());
    let mut malformed = false;
    let mut length = |duration: Option<&Duration>| {
        let duration = duration?;
        let nanos = nanos(duration);
        if nanos.is_none() {
            malformed = true;
            let text = &duration.0;
            problems.invalid(
                &Path::WHOLE,
                format!("{text:?} in spec.certificateRotateStrategy is no duration such as 24h"),
            );
        }
        nanos
    };
    let life = |config: Option<&CertConfig>| config.and_then(|config| config.duration.clone());
    let renew = |config: Option<&CertConfig>| config.and_then(|config| config.renew_before.clone());
    // The deprecated fields come first, as they did before there were others.
    let ca_life = length(certificates.ca_rotate_interval.as_ref().or(life(ca).as_ref())).unwrap_or(CA_LIFE);
    let ca_renew =
        length(certificates.ca_overlap_interval.as_ref().or(renew(ca).as_ref())).unwrap_or(ca_life / 5);
    let server_life =
        length(certificates.cert_rotate_interval.as_ref().or(life(server).as_ref())).unwrap_or(SERVER_LIFE);
    let server_renew = length(renew(server).as_ref()).unwrap_or(server_life / 5);
    if malformed {
        return;
    }
    let table = [
        (ca_life < ca_renew, "ca.renewBefore is longer than ca.duration"),
        (server_life < server_renew, "server.renewBefore is longer than server.duration"),
        (
            server_life > ca_life,
            "server.duration is longer than ca.duration, and an authority must outlive what it signs",
        ),
    ];
    for (_, text) in table.iter().filter(|(holds, _)| *holds) {
        problems.invalid(&Path::WHOLE, format!("in spec.certificateRotateStrategy.selfSigned, {text}"));
    }
}

fn nanos(duration: &Duration) -> Option<i128> {
    let parsed = duration.parse().ok()?;
    let negative = parsed.is_negative();
    let size = i128::try_from(std::time::Duration::from(parsed).as_nanos()).ok()?;
    Some(if negative { -size } else { size })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{assert_fields, read};

    #[test]
    fn lifetimes() {
        let one = &[""][..];
        let cases = [
            ("defaults", json!({}), &[][..]),
            (
                "new",
                json!({ "ca": { "duration": "48h", "renewBefore": "16h" }, "server": { "duration": "24h" } }),
                &[],
            ),
            (
                "old",
                json!({ "caRotateInterval": "48h", "caOverlapInterval": "16h", "certRotateInterval": "24h" }),
                &[],
            ),
            ("both", json!({ "caRotateInterval": "48h", "server": { "duration": "24h" } }), one),
            ("both overlap", json!({ "caOverlapInterval": "1h", "ca": {} }), one),
            ("ca renewed too early", json!({ "ca": { "duration": "24h", "renewBefore": "25h" } }), one),
            ("ca renewed at once", json!({ "ca": { "duration": "24h", "renewBefore": "24h" } }), &[]),
            (
                "old ca renewed too early",
                json!({ "caRotateInterval": "24h", "caOverlapInterval": "25h" }),
                one,
            ),
            ("server renewed too early", json!({ "server": { "duration": "2h", "renewBefore": "3h" } }), one),
            ("server renewed too early by default", json!({ "server": { "renewBefore": "25h" } }), one),
            (
                "server outlives ca",
                json!({ "ca": { "duration": "4h" }, "server": { "duration": "5h" } }),
                one,
            ),
            ("server outlives ca by default", json!({ "ca": { "duration": "4h" } }), one),
            ("server outlives the default ca", json!({ "certRotateInterval": "169h" }), one),
            ("server as long as ca", json!({ "certRotateInterval": "168h" }), &[]),
            ("no duration", json!({ "ca": { "duration": "long" } }), one),
            ("negative", json!({ "ca": { "duration": "-1h" } }), &["", ""]),
            (
                "everything",
                json!({
                    "ca": { "duration": "1h", "renewBefore": "2h" },
                    "server": { "duration": "3h", "renewBefore": "4h" },
                    "caRotateInterval": "1h",
                }),
                &["", "", "", ""],
            ),
        ];
        for (case, value, expected) in cases {
            let mut problems = Problems::default();
            check(&read(value), &mut problems);
            assert_fields(case, &problems, expected);
        }
    }
}
