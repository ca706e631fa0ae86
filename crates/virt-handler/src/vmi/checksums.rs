//! Fingerprints of container disks, which take their time and are not waited for.

use kubevirt_admission::ClusterConfig;
use kubevirt_admission::gates::Gate;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::NamespacedName;
use tokio::sync::Semaphore;

use super::Instances;
use crate::prepare::{self, Place};

/// Whole images are read, one at a time: guests that start need the disks more.
static ONE: Semaphore = Semaphore::const_new(1);

impl Instances {
    /// Begins to compute the fingerprints of an instance's container disks, once.
    pub(super) fn fingerprint_disks(
        &self,
        uid: &str,
        vmi: &VirtualMachineInstance,
        place: &Place,
        config: &ClusterConfig,
    ) {
        self.memory.change(uid, |memory| memory.checksums_asked = true);
        if config.enabled(Gate::ImageVolume) {
            return;
        }
        let (vmi, place, uid) = (vmi.clone(), place.clone(), uid.to_owned());
        let (memory, queue) = (self.memory.clone(), self.queue.clone());
        tokio::spawn(async move {
            let _one = ONE.acquire().await;
            match prepare::checksums(&vmi, &place).await {
                Ok(Some(sums)) => {
                    memory.change_known(&uid, |memory| {
                        memory.on_node.checksums = sums.disks.into_iter().collect();
                        memory.on_node.kernel = (sums.kernel, sums.initrd);
                    });
                    queue.add(NamespacedName::of(&vmi));
                }
                Ok(None) => {}
                Err(error) => tracing::info!(%error, "container disks have no fingerprints"),
            }
        });
    }
}
