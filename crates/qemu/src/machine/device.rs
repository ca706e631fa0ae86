//! Plugging devices in and out.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::Machine;
use crate::qmp::{AcpiOst, Event, Events, QmpError};

/// Why a device is still in.
#[derive(Debug, thiserror::Error)]
pub enum UnplugError {
    /// There is no such device, or no longer.
    #[error("there is no device {id}")]
    NoSuchDevice {
        /// Its id.
        id: String,
    },
    /// The guest said no. It may be asked again.
    #[error("the guest does not let {id} go")]
    GuestRefused {
        /// Its id.
        id: String,
    },
    /// The guest has said nothing so far. The request stands: the device may still go later.
    #[error("the guest has not let {id} go within {after:?}")]
    Pending {
        /// Its id.
        id: String,
        /// How long we waited.
        after: Duration,
    },
    /// The monitor failed.
    #[error(transparent)]
    Qmp(#[from] QmpError),
}

impl Machine {
    /// Plugs a device in: `driver`, `id` and its properties, as in `-device`.
    pub async fn plug(&self, device: impl Serialize) -> Result<(), QmpError> {
        self.qmp.run("device_add", device).await
    }

    /// Asks the guest to let a device go and waits until it is out; only then may its backend be removed.
    pub async fn unplug(&self, id: &str, within: Duration) -> Result<(), UnplugError> {
        let until = Instant::now() + within;
        let events = self.events();
        match self.request_unplug(id).await {
            Ok(()) => {}
            Err(error) if error.is_not_found() => {
                return Err(UnplugError::NoSuchDevice { id: id.to_owned() });
            }
            Err(QmpError::Refused { desc, .. }) if desc.contains("in the process of unplug") => {}
            Err(error) => return Err(error.into()),
        }
        match timeout_at(until, self.until_out(id, events)).await {
            Ok(result) => result,
            Err(_) => Err(UnplugError::Pending { id: id.to_owned(), after: within }),
        }
    }

    /// Asks the guest to let a device go. [`Event::DeviceDeleted`] tells when it has.
    pub async fn request_unplug(&self, id: &str) -> Result<(), QmpError> {
        self.qmp.run("device_del", json!({ "id": id })).await
    }

    /// Whether there is a device of that id.
    pub async fn has_device(&self, id: &str) -> Result<bool, QmpError> {
        match self.properties_of(&format!("/machine/peripheral/{id}")).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn until_out(&self, id: &str, mut events: Events) -> Result<(), UnplugError> {
        while let Some(happened) = events.next().await {
            match News::of(&happened.event, id) {
                News::Out => return Ok(()),
                News::Refused => return Err(UnplugError::GuestRefused { id: id.to_owned() }),
                News::Perhaps if !self.has_device(id).await? => return Ok(()),
                News::Perhaps | News::None => {}
            }
        }
        Err(QmpError::Gone(self.qmp.gone().await).into())
    }
}

/// What an event means for a device on its way out.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Out,
    Refused,
    Perhaps,
    None,
}

impl News {
    fn of(event: &Event, id: &str) -> Self {
        match event {
            Event::DeviceDeleted { device: Some(device), .. } if device == id => Self::Out,
            // Of an emulated CPU some QEMUs announce only the end of its parts.
            Event::DeviceDeleted { device: None, path } if is_part(path, id) => Self::Perhaps,
            Event::AcpiDeviceOst { info: AcpiOst { device: None, .. } } | Event::Missed { .. } => {
                Self::Perhaps
            }
            Event::AcpiDeviceOst { info }
                if info.device.as_deref() == Some(id) && info.is_refused_eject() =>
            {
                Self::Refused
            }
            Event::DeviceUnplugGuestError { device: Some(device), .. }
            | Event::MemUnplugError { device, .. }
                if device == id =>
            {
                Self::Refused
            }
            _ => Self::None,
        }
    }
}

fn is_part(path: &str, id: &str) -> bool {
    path.strip_prefix("/machine/peripheral/")
        .and_then(|path| path.strip_prefix(id))
        .is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn events_speak_of_the_device_or_of_others() {
        let ost = |device: Value, source: i64, status: i64| {
            let info = json!({
                "device": device, "slot": "1", "slot-type": "CPU", "source": source, "status": status,
            });
            ("ACPI_DEVICE_OST", json!({ "info": info }))
        };
        let deleted =
            |device: Value, path: &str| ("DEVICE_DELETED", json!({ "device": device, "path": path }));
        let cases = [
            (deleted(json!("cpu1"), "/machine/peripheral/cpu1"), News::Out),
            (deleted(json!("cpu11"), "/machine/peripheral/cpu11"), News::None),
            (deleted(json!(null), "/machine/peripheral/cpu1/lapic"), News::Perhaps),
            (deleted(json!(null), "/machine/peripheral/cpu11/lapic"), News::None),
            (ost(json!("cpu1"), 3, 0x84), News::None),
            (ost(json!("cpu1"), 3, 1), News::Refused),
            (ost(json!("cpu1"), 0x103, 0x81), News::Refused),
            (ost(json!("cpu2"), 3, 1), News::None),
            (ost(json!("cpu1"), 1, 1), News::None),
            (ost(json!(null), 3, 0), News::Perhaps),
            (("DEVICE_UNPLUG_GUEST_ERROR", json!({ "device": "cpu1", "path": "/x" })), News::Refused),
            (("MEM_UNPLUG_ERROR", json!({ "device": "dimm0", "msg": "busy" })), News::None),
        ];
        for ((name, data), expected) in cases {
            let event = Event::read(name.to_owned(), data);
            assert_eq!(News::of(&event, "cpu1"), expected, "{event:?}");
        }
    }
}
