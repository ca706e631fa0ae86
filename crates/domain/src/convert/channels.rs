//! Serial console and channels between guest and host.

use super::Conversion;
use crate::domain::devices::{Channel, Console};

/// Serial console, unless the VMI wants none.
pub(super) fn console(c: &Conversion<'_>) -> Option<Console> {
    if c.spec.devices.autoattach_serial_console == Some(false) {
        return None;
    }
    let logged = c.spec.devices.log_serial_console.unwrap_or(c.host.serial_log);
    Some(Console {
        socket: c.layout.machine(c.uid(), "virt-serial0"),
        log: logged.then(|| c.layout.machine(c.uid(), "virt-serial0-log")),
    })
}

/// The guest agent's channel, and that of the host's metrics where it is asked for.
pub(super) fn convert(c: &Conversion<'_>) -> Vec<Channel> {
    let agent =
        Channel { name: "org.qemu.guest_agent.0".into(), socket: c.layout.machine(c.uid(), "virt-agent") };
    let metrics = c.spec.devices.downward_metrics.as_ref().map(|_| Channel {
        name: "org.github.vhostmd.1".into(),
        socket: c.layout.downward_metrics_channel(),
    });
    std::iter::once(agent).chain(metrics).collect()
}
