//! Plugging devices in and out.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::Machine;
use crate::qmp::{Event, Events, QmpError};

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
            match &happened.event {
                Event::DeviceDeleted { device: Some(device), .. } if device == id => return Ok(()),
                Event::DeviceUnplugGuestError { device: Some(device), .. }
                | Event::MemUnplugError { device, .. }
                    if device == id =>
                {
                    return Err(UnplugError::GuestRefused { id: id.to_owned() });
                }
                Event::Missed { .. } if !self.has_device(id).await? => return Ok(()),
                _ => {}
            }
        }
        Err(QmpError::Gone(self.qmp.gone().await).into())
    }
}
