//! How large the images of claims and host disks are made and may become, from what the VMI says.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::status::PersistentVolumeClaimInfo;

const MIB: u64 = 1 << 20;

/// Why a size cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// A quantity is no number of bytes.
    #[error("{field} is {text:?}, which is no number of bytes")]
    Quantity {
        /// The field.
        field: &'static str,
        /// What it says.
        text: String,
    },
    /// A size is less than a MiB.
    #[error("{0} bytes are too few: a disk has at least 1Mi")]
    TooSmall(u64),
    /// The VMI's status says nothing about a claim's size.
    #[error("its claim has neither a capacity nor a request")]
    Unsaid,
    /// A host disk that is to be made has no size.
    #[error("hostDisk.capacity is {0}")]
    HostDisk(&'static str),
}

/// A number of bytes.
pub fn bytes(field: &'static str, quantity: &Quantity) -> Result<u64, SizeError> {
    let number = quantity.bytes().ok().and_then(|bytes| u64::try_from(bytes).ok());
    number.ok_or_else(|| SizeError::Quantity { field, text: quantity.0.clone() })
}

/// The size of a new disk: a whole number of MiB.
pub fn of_disk(bytes: u64) -> Result<u64, SizeError> {
    match whole(bytes) {
        0 => Err(SizeError::TooSmall(bytes)),
        size => Ok(size),
    }
}

/// Size to make the image of a claim with: what was asked for, but not more than there is.
pub fn of_claim(info: &PersistentVolumeClaimInfo) -> Result<u64, SizeError> {
    let sizes = [storage("capacity", info.capacity.as_ref())?, storage("requests", info.requests.as_ref())?];
    of_disk(sizes.into_iter().flatten().min().ok_or(SizeError::Unsaid)?)
}

/// Size to make a host disk with: what was asked for, to the byte.
pub fn of_host_disk(capacity: Option<&Quantity>) -> Result<u64, SizeError> {
    match bytes("hostDisk.capacity", capacity.ok_or(SizeError::HostDisk("not set"))?)? {
        0 => Err(SizeError::HostDisk("0")),
        size => Ok(size),
    }
}

/// How large the image of a claim may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Bytes of the claim.
    pub capacity: u64,
    /// Thousandths of the file system that it needs for itself.
    pub overhead: u16,
}

impl Growth {
    /// That of a claim; nothing if too little is known to be sure.
    pub fn of_claim(info: &PersistentVolumeClaimInfo) -> Option<Self> {
        let capacity = storage("capacity", info.capacity.as_ref()).ok()??;
        let requests = storage("requests", info.requests.as_ref()).ok()??;
        let overhead = thousandths(info.filesystem_overhead.as_deref()?)?;
        Some(Self { capacity: capacity.min(requests), overhead })
    }

    /// The size that an image can have where `usable` bytes are free or taken by itself already.
    pub fn size(self, usable: u64) -> u64 {
        let share = u128::from(1000 - self.overhead.min(1000));
        whole((u128::from(self.capacity.min(usable)) * share / 1000) as u64)
    }
}

/// As many whole MiB as there are in a number of bytes, in bytes.
fn whole(bytes: u64) -> u64 {
    bytes / MIB * MIB
}

fn storage(
    field: &'static str,
    quantities: Option<&BTreeMap<String, Quantity>>,
) -> Result<Option<u64>, SizeError> {
    quantities.and_then(|all| all.get("storage")).map(|quantity| bytes(field, quantity)).transpose()
}

/// A fraction between 0 and 1 with up to three digits.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if digits.len() > 3 || !all_digits(digits) || whole.is_empty() || !all_digits(whole) {
        return None;
    }
    let whole: u16 = whole.parse().ok()?;
    let part: u16 = format!("{digits:0<3}").parse().ok()?;
    whole.checked_mul(1000)?.checked_add(part).filter(|all| *all <= 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(
        capacity: Option<&str>,
        requests: Option<&str>,
        overhead: Option<&str>,
    ) -> PersistentVolumeClaimInfo {
        let storage = |text: Option<&str>| {
            text.map(|text| BTreeMap::from([("storage".to_owned(), Quantity(text.into()))]))
        };
        PersistentVolumeClaimInfo {
            capacity: storage(capacity),
            requests: storage(requests),
            filesystem_overhead: overhead.map(Into::into),
            ..Default::default()
        }
    }

    #[test]
    fn an_image_is_as_large_as_asked_but_not_larger_than_its_claim() {
        let cases = [
            (info(Some("2Gi"), Some("1Gi"), None), Ok(1024 * MIB)),
            (info(Some("1Gi"), Some("2Gi"), None), Ok(1024 * MIB)),
            (info(None, Some("3M"), None), Ok(2 * MIB)),
            (info(Some("1500k"), None, None), Ok(MIB)),
            (info(None, None, None), Err("its claim has neither a capacity nor a request")),
            (info(Some("1000"), None, None), Err("1000 bytes are too few: a disk has at least 1Mi")),
            (info(Some("x"), None, None), Err("capacity is \"x\", which is no number of bytes")),
            (info(None, Some("-1"), None), Err("requests is \"-1\", which is no number of bytes")),
        ];
        for (info, expected) in cases {
            let size = of_claim(&info).map_err(|error| error.to_string());
            assert_eq!(size, expected.map_err(str::to_owned), "{info:?}");
        }
    }

    #[test]
    fn a_host_disk_needs_a_size() {
        let size = |text: Option<&str>| of_host_disk(text.map(|text| Quantity(text.into())).as_ref());
        assert_eq!(size(Some("1500")), Ok(1500));
        assert_eq!(size(Some("0")).unwrap_err().to_string(), "hostDisk.capacity is 0");
        assert_eq!(size(None).unwrap_err().to_string(), "hostDisk.capacity is not set");
    }

    #[test]
    fn an_image_grows_only_if_all_is_known() {
        let growth = |capacity, overhead| Some(Growth { capacity, overhead });
        let cases = [
            (info(Some("2Gi"), Some("1Gi"), Some("0.055")), growth(1 << 30, 55)),
            (info(Some("1Gi"), Some("2Gi"), Some("0")), growth(1 << 30, 0)),
            (info(Some("1Gi"), Some("2Gi"), Some("1")), growth(1 << 30, 1000)),
            (info(Some("1Gi"), Some("2Gi"), Some("0.5")), growth(1 << 30, 500)),
            (info(Some("1Gi"), Some("2Gi"), None), None),
            (info(None, Some("2Gi"), Some("0")), None),
            (info(Some("1Gi"), None, Some("0")), None),
        ];
        for (info, expected) in cases {
            assert_eq!(Growth::of_claim(&info), expected, "{info:?}");
        }
        for text in ["", ".", "-1", "0.0555", "1.1", "2", "x", "0.+5"] {
            assert_eq!(thousandths(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_file_system_keeps_its_share() {
        let growth = Growth { capacity: 1000 * MIB, overhead: 55 };
        let cases = [(u64::MAX, 945 * MIB), (100 * MIB, 94 * MIB), (MIB, 0), (0, 0)];
        for (usable, expected) in cases {
            assert_eq!(growth.size(usable), expected, "{usable}");
        }
        let all = Growth { capacity: u64::MAX, overhead: 0 };
        assert_eq!(all.size(u64::MAX), u64::MAX - (MIB - 1));
    }
}
