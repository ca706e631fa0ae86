//! Interfaces, and the files handed to QEMU for them.

use std::os::fd::OwnedFd;

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::Machine;
use crate::qmp::QmpError;

impl Machine {
    /// Hands an open file to QEMU under a name, which then stands for it: in `fd` of a netdev, in a migration.
    pub async fn pass_fd(&self, name: &str, fd: OwnedFd) -> Result<(), QmpError> {
        self.qmp.call_with_fd::<IgnoredAny>("getfd", json!({ "fdname": name }), fd).await.map(drop)
    }

    /// Closes a file in QEMU that nothing has used.
    pub async fn close_fd(&self, name: &str) -> Result<(), QmpError> {
        self.qmp.run("closefd", json!({ "fdname": name })).await
    }

    /// Adds the host's side of an interface: `type`, `id` and its options, as in `-netdev`.
    pub async fn add_netdev(&self, netdev: impl Serialize) -> Result<(), QmpError> {
        self.qmp.run("netdev_add", netdev).await
    }

    /// Removes the host's side of an interface.
    pub async fn remove_netdev(&self, id: &str) -> Result<(), QmpError> {
        self.qmp.run("netdev_del", json!({ "id": id })).await
    }

    /// Plugs or pulls the cable of an interface, by the id of its device or netdev.
    pub async fn set_link(&self, id: &str, up: bool) -> Result<(), QmpError> {
        self.qmp.run("set_link", json!({ "name": id, "up": up })).await
    }

    /// Lets the guest's interfaces announce themselves, so that switches learn where they are now.
    pub async fn announce(&self) -> Result<(), QmpError> {
        let arguments = json!({ "initial": 50, "max": 550, "rounds": 5, "step": 50 });
        self.qmp.run("announce-self", arguments).await
    }
}
