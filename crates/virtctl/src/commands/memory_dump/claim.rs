//! The claim for a dump: as large as the memory and what is around it.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubevirt_api::data_volume::CDIConfig;
use kubevirt_api::names::external::cdi;
use kubevirt_api::quantity::Amount;
use kubevirt_api::vmi::VirtualMachineInstance;

/// The share of a file system that is not for files, if nobody says.
pub const OVERHEAD: &str = "0.055";
/// What a dump has beside the memory.
const AROUND: i64 = 100 << 20;
const MIB: i64 = 1 << 20;

/// The overhead of a storage class.
pub fn overhead(config: &CDIConfig, class: Option<&str>) -> Result<String> {
    let overhead = config.status.as_ref().and_then(|status| status.filesystem_overhead.as_ref());
    let overhead = overhead.context("CDI config not initialized")?;
    let of_class = class.and_then(|class| overhead.storage_class.as_ref()?.get(class).cloned());
    of_class.or_else(|| overhead.global.clone()).context("CDI config not initialized")
}

/// How large a claim must be, in whole mebibytes.
pub fn size(vmi: &VirtualMachineInstance, overhead: &str) -> Result<i64> {
    let requests = vmi.spec.domain.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let requested = requests.and_then(|requests| requests.get("memory"));
    // Without a request it is the guest's memory that counts.
    let guest = vmi.spec.domain.memory.as_ref().and_then(|memory| memory.guest.as_ref());
    let memory = requested.or(guest).map(Amount::of).transpose()?.unwrap_or_default().value();
    // Thousandths of thousandths, so that nothing is rounded before the end.
    let share =
        Amount::parse(overhead).with_context(|| format!("{overhead} is not a share of a file system"))?;
    let nanos = share.nanos();
    if !(0..=1_000_000_000).contains(&nanos) {
        bail!("{overhead} is not a share of a file system");
    }
    let bytes = i128::from(memory) + i128::from(AROUND);
    let whole = bytes + (bytes * nanos + 999_999_999) / 1_000_000_000;
    let mib = i128::from(MIB);
    Ok(i64::try_from((whole + mib - 1) / mib * mib)?)
}

/// The claim.
pub fn claim(
    name: &str,
    namespace: &str,
    size: i64,
    class: Option<&str>,
    access_mode: Option<&str>,
) -> Result<PersistentVolumeClaim> {
    let mode = match access_mode.filter(|mode| !mode.is_empty()) {
        None => "ReadWriteOnce",
        Some(mode @ ("ReadWriteOnce" | "ReadWriteMany")) => mode,
        Some("ReadOnlyMany") => {
            bail!(
                "cannot dump memory to a readonly pvc, use either ReadWriteOnce or ReadWriteMany if supported"
            )
        }
        Some(_) => bail!("invalid access mode, use either ReadWriteOnce or ReadWriteMany if supported"),
    };
    let quantity = Quantity(format!("{}Mi", size / MIB));
    Ok(PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([(cdi::APPLY_STORAGE_PROFILE.to_owned(), "true".to_owned())])),
            ..Default::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec![mode.to_owned()]),
            storage_class_name: class.map(str::to_owned),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".to_owned(), quantity)])),
                ..Default::default()
            }),
            ..Default::default()
        }),
        status: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn vmi(domain: Value) -> VirtualMachineInstance {
        let mut domain = domain;
        domain["devices"] = json!({});
        serde_json::from_value(json!({ "metadata": { "name": "a" }, "spec": { "domain": domain } })).unwrap()
    }

    #[test]
    fn a_claim_holds_memory_and_overhead() {
        let requested = vmi(json!({ "resources": { "requests": { "memory": "1Gi" } } }));
        assert_eq!(size(&requested, "0").unwrap(), 1124 * MIB);
        assert_eq!(size(&requested, "0.055").unwrap(), 1186 * MIB);
        let guest = vmi(json!({ "memory": { "guest": "128Mi" } }));
        assert_eq!(size(&guest, "0.5").unwrap(), 342 * MIB);
        assert_eq!(size(&vmi(json!({})), "0").unwrap(), 100 * MIB);
        for overhead in ["x", "-1", "2"] {
            assert!(size(&guest, overhead).is_err(), "{overhead}");
        }
    }

    #[test]
    fn overhead_is_that_of_the_class() {
        let config: CDIConfig = serde_json::from_value(json!({
            "status": { "filesystemOverhead": { "global": "0.06", "storageClass": { "slow": "0.1" } } },
        }))
        .unwrap();
        assert_eq!(overhead(&config, None).unwrap(), "0.06");
        assert_eq!(overhead(&config, Some("fast")).unwrap(), "0.06");
        assert_eq!(overhead(&config, Some("slow")).unwrap(), "0.1");
        assert!(overhead(&CDIConfig::default(), None).is_err());
    }

    #[test]
    fn claims_can_be_written() {
        let made = claim("c", "ns", 5 * MIB, Some("fast"), Some("ReadWriteMany")).unwrap();
        let spec = made.spec.unwrap();
        assert_eq!(spec.resources.unwrap().requests.unwrap()["storage"].0, "5Mi");
        assert_eq!(spec.access_modes.unwrap(), ["ReadWriteMany"]);
        assert_eq!(spec.storage_class_name.as_deref(), Some("fast"));
        assert_eq!(made.metadata.labels.unwrap()["cdi.kubevirt.io/applyStorageProfile"], "true");
        let plain = claim("c", "ns", MIB, None, None).unwrap().spec.unwrap();
        assert_eq!(plain.access_modes.unwrap(), ["ReadWriteOnce"]);
        for mode in ["ReadOnlyMany", "x"] {
            assert!(claim("c", "ns", MIB, None, Some(mode)).is_err(), "{mode}");
        }
    }
}
