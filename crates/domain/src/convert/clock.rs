//! The guest's clock and how its timers treat lost ticks.

use kubevirt_api::vmi::clock::{HpetTickPolicy, PitTickPolicy, RtcTickPolicy, RtcTimerTrack, Timer};

use super::{Conversion, text};
use crate::domain::Architecture;
use crate::domain::firmware::{Clock, ClockBase, PitPolicy};

/// The clock; presence of timers is the board's and the CPU's.
pub(super) fn convert(c: &mut Conversion<'_>) -> Clock {
    let Some(spec) = &c.spec.clock else { return Clock::default() };
    let mut clock = Clock::default();
    if let Some(utc) = &spec.utc {
        if let Some(offset) = utc.offset_seconds.filter(|offset| *offset != 0) {
            clock.base = shifted(c, offset);
        }
    } else if let Some(zone) = text(&spec.timezone) {
        clock.base = ClockBase::Local;
        c.environment.insert("TZ".into(), zone);
    }
    if let Some(timer) = &spec.timer {
        hpet(c, timer);
        rtc(c, timer, &mut clock);
        clock.pit_policy = pit(c, timer);
    }
    clock
}

fn shifted(c: &mut Conversion<'_>, offset: i64) -> ClockBase {
    match c.host.now.and_then(|now| now.checked_add(offset)).and_then(date) {
        Some(date) => ClockBase::At(date),
        None => {
            c.unsupported("spec.domain.clock.utc.offsetSeconds", "the time it leads to is not known");
            ClockBase::Utc
        }
    }
}

fn hpet(c: &mut Conversion<'_>, timer: &Timer) {
    let policy =
        timer.hpet.as_ref().and_then(|hpet| hpet.tick_policy.clone()).filter(|policy| !policy.is_empty());
    if let Some(policy) = policy.filter(|policy| *policy != HpetTickPolicy::Delay) {
        let reason = format_args!("this timer knows delay only, not {:?}", policy.as_str());
        c.unsupported("spec.domain.clock.timer.hpet.tickPolicy", reason);
    }
}

fn rtc(c: &mut Conversion<'_>, timer: &Timer, clock: &mut Clock) {
    let Some(rtc) = &timer.rtc else { return };
    let field = "spec.domain.clock.timer.rtc";
    if rtc.present == Some(false) {
        c.unsupported(format!("{field}.present"), "a machine always has this clock");
    }
    match &rtc.tick_policy {
        Some(RtcTickPolicy::Catchup) if c.architecture == Architecture::Amd64 => clock.catch_up = true,
        None | Some(RtcTickPolicy::Delay) => {}
        Some(other) if other.is_empty() => {}
        Some(other) => {
            c.unsupported(
                format!("{field}.tickPolicy"),
                format_args!("{:?} is not possible", other.as_str()),
            );
        }
    }
    match &rtc.track {
        Some(RtcTimerTrack::Guest) => clock.follows_guest = Some(true),
        Some(RtcTimerTrack::Wall) => clock.follows_guest = Some(false),
        Some(RtcTimerTrack::Other(other)) if !other.is_empty() => {
            c.unsupported(format!("{field}.track"), format_args!("{other:?} is not known"));
        }
        _ => {}
    }
}

fn pit(c: &mut Conversion<'_>, timer: &Timer) -> Option<PitPolicy> {
    let pit = timer.pit.as_ref()?;
    if c.architecture != Architecture::Amd64 {
        if pit.present.unwrap_or(true) {
            c.unsupported("spec.domain.clock.timer.pit", "only amd64 machines have it");
        }
        return None;
    }
    match pit.tick_policy.as_ref()? {
        PitTickPolicy::Delay => Some(PitPolicy::Delay),
        PitTickPolicy::Discard => Some(PitPolicy::Discard),
        PitTickPolicy::Catchup => None,
        PitTickPolicy::Other(other) => {
            if !other.is_empty() {
                c.unsupported(
                    "spec.domain.clock.timer.pit.tickPolicy",
                    format_args!("{other:?} is not known"),
                );
            }
            None
        }
    }
}

/// Seconds since 1970 as `2026-11-15T20:11:35`, for years from 1970 to 9999.
fn date(seconds: i64) -> Option<String> {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let is_leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let (mut year, mut day) = (1970, u64::try_from(days).ok()?);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
        if year > 9999 {
            return None;
        }
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    Some(format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}", day + 1))
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates() {
        assert_eq!(date(0).unwrap(), "1970-01-01T00:00:00");
        assert_eq!(date(951_782_400).unwrap(), "2000-02-29T00:00:00");
        assert_eq!(date(1_794_773_495).unwrap(), "2026-11-15T20:11:35");
        assert_eq!(date(-1), None);
        assert_eq!(date(i64::MAX), None);
    }
}
