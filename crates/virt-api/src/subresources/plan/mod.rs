//! What a request comes to, decided from what was seen and from nothing else.

pub mod evacuation;
pub mod lifecycle;
pub mod memory_dump;
pub mod ready;
pub mod sev;
pub mod volumes;

use kubevirt_api::condition::{self, Condition};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;

const VM_NOT_RUNNING: &str = "VM is not running";
const VMI_NOT_RUNNING: &str = "VMI is not running";

/// The phase of an instance, if it has one.
pub fn phase(vmi: &VirtualMachineInstance) -> Option<&VmiPhase> {
    vmi.status.as_ref()?.phase.as_ref().filter(|phase| !phase.is_empty())
}

/// Whether the guest of an instance runs.
pub fn is_running(vmi: &VirtualMachineInstance) -> bool {
    phase(vmi) == Some(&VmiPhase::Running)
}

/// A condition of an instance.
fn condition<'a>(vmi: &'a VirtualMachineInstance, kind: &str) -> Option<&'a Condition> {
    condition::find(vmi.status.as_ref()?.conditions.as_deref(), kind)
}

fn name_of<K: kube::Resource>(object: &K) -> &str {
    object.meta().name.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod testing {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use crate::subresources::seen::Seen;

    pub fn seen<K: DeserializeOwned>(mut object: Value) -> Seen<K> {
        object["metadata"]["name"] = json!("vm");
        object["metadata"]["namespace"] = json!("default");
        Seen::of(object).unwrap()
    }
}
