//! How large the image of a claim or host disk is made, from what the VMI says.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::status::PersistentVolumeClaimInfo;
use kubevirt_disk_image::align_down;

/// What was asked for, but not more than the claim has; a whole number of MiB.
pub fn of_claim(info: &PersistentVolumeClaimInfo) -> Result<u64, String> {
    let storage = |field, quantities: &Option<BTreeMap<String, Quantity>>| {
        let quantity = quantities.as_ref().and_then(|all| all.get("storage"));
        quantity.map(|quantity| bytes(field, quantity)).transpose()
    };
    let sizes = [storage("capacity", &info.capacity)?, storage("requests", &info.requests)?];
    let size = sizes.into_iter().flatten().min();
    let size = size.ok_or("its claim has neither a capacity nor a request")?;
    match align_down(size) {
        0 => Err(format!("{size} bytes are too few: a disk has at least 1Mi")),
        size => Ok(size),
    }
}

/// What was asked for, to the byte.
pub fn of_host_disk(capacity: Option<&Quantity>) -> Result<u64, String> {
    let size = bytes("hostDisk.capacity", capacity.ok_or("hostDisk.capacity is not set")?)?;
    if size == 0 { Err("hostDisk.capacity is 0".to_owned()) } else { Ok(size) }
}

fn bytes(field: &str, quantity: &Quantity) -> Result<u64, String> {
    let number = quantity.bytes().ok().and_then(|bytes| u64::try_from(bytes).ok());
    number.ok_or_else(|| format!("{field} is {:?}, which is no number of bytes", quantity.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn info(capacity: Option<&str>, requests: Option<&str>) -> PersistentVolumeClaimInfo {
        let storage = |text: Option<&str>| {
            text.map(|text| BTreeMap::from([("storage".to_owned(), Quantity(text.into()))]))
        };
        PersistentVolumeClaimInfo {
            capacity: storage(capacity),
            requests: storage(requests),
            ..Default::default()
        }
    }

    #[test]
    fn a_claims_image_is_as_large_as_asked_but_not_larger_than_the_claim() {
        for (info, expected) in [
            (info(Some("2Gi"), Some("1Gi")), Ok(1024 * MIB)),
            (info(Some("1Gi"), Some("2Gi")), Ok(1024 * MIB)),
            (info(None, Some("3M")), Ok(2 * MIB)),
            (info(Some("1500k"), None), Ok(MIB)),
            (info(None, None), Err("its claim has neither a capacity nor a request")),
            (info(Some("1000"), None), Err("1000 bytes are too few: a disk has at least 1Mi")),
            (info(Some("x"), None), Err("capacity is \"x\", which is no number of bytes")),
        ] {
            assert_eq!(of_claim(&info), expected.map_err(str::to_owned), "{info:?}");
        }
    }

    #[test]
    fn a_host_disk_needs_a_size() {
        let size = |text: &str| of_host_disk(Some(&Quantity(text.into())));
        assert_eq!(size("1500"), Ok(1500));
        assert!(size("0").is_err());
        assert!(of_host_disk(None).is_err());
    }
}
