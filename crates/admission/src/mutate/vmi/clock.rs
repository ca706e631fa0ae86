//! The timers of the guest's clock: one that is named is there.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;

/// Makes every timer present that is named without saying whether it is.
pub fn set(spec: &mut VirtualMachineInstanceSpec) {
    let Some(timer) = spec.domain.clock.as_mut().and_then(|clock| clock.timer.as_mut()) else { return };
    let present = [
        timer.hpet.as_mut().map(|timer| &mut timer.present),
        timer.kvm.as_mut().map(|timer| &mut timer.present),
        timer.pit.as_mut().map(|timer| &mut timer.present),
        timer.rtc.as_mut().map(|timer| &mut timer.present),
        timer.hyperv.as_mut().map(|timer| &mut timer.present),
    ];
    for present in present.into_iter().flatten() {
        present.get_or_insert(true);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::read;

    #[test]
    fn a_timer_that_is_named_is_present() {
        let timer = json!({ "hpet": {}, "kvm": {}, "pit": { "present": false }, "rtc": { "track": "guest" }, "hyperv": {} });
        let mut spec: VirtualMachineInstanceSpec =
            read(json!({ "domain": { "devices": {}, "clock": { "timer": timer } } }));
        set(&mut spec);
        let expected = json!({
            "hpet": { "present": true },
            "kvm": { "present": true },
            "pit": { "present": false },
            "rtc": { "present": true, "track": "guest" },
            "hyperv": { "present": true },
        });
        assert_eq!(serde_json::to_value(spec.domain.clock.unwrap().timer).unwrap(), expected);
    }
}
