//! SCSI reservations that outlive a restart, which the cluster must be set up for.

use kubevirt_api::vmi::disks::Disk;

use crate::{Context, Path, Problems};

/// Refuses reservations where the cluster does not hold them.
pub(super) fn check(cx: &Context<'_>, path: &Path<'_>, disks: &[Disk], problems: &mut Problems) {
    let reserves = |disk: &Disk| disk.lun.as_ref().is_some_and(|lun| lun.reservation.unwrap_or_default());
    if disks.iter().any(reserves) && !cx.config.persistent_reservation() {
        let message =
            "persistent reservations are off; set persistentReservationConfiguration.enabled in KubeVirt";
        problems.invalid(&path.at("domain.devices.disks.luns.reservation"), message);
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_api::vmi::disks::Disk;
    use serde_json::json;

    use crate::testing::{World, assert_fields, read};
    use crate::{Path, Problems};

    #[test]
    fn a_reservation_needs_a_cluster_that_holds_it() {
        let on = json!({ "persistentReservationConfiguration": { "enabled": true } });
        let off = json!({
            "persistentReservationConfiguration": { "enabled": false },
            "developerConfiguration": { "featureGates": ["PersistentReservation"] },
        });
        let named = json!({ "developerConfiguration": { "featureGates": ["PersistentReservation"] } });
        let field = &["spec.domain.devices.disks.luns.reservation"][..];
        let cases = [
            ("default", json!({}), true, field),
            ("no reservation", json!({}), false, &[]),
            ("on", on, true, &[]),
            ("off wins over the gate", off, true, field),
            ("by the gate", named, true, &[]),
        ];
        for (name, configuration, reservation, expected) in cases {
            let disks: Vec<Disk> = read(json!([{ "name": "a", "lun": { "reservation": reservation } }]));
            let mut problems = Problems::default();
            World::default()
                .with_configuration(configuration)
                .run(|cx| super::check(cx, &Path::new("spec"), &disks, &mut problems));
            assert_fields(name, &problems, expected);
        }
    }
}
