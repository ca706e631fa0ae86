//! Images of claims and host disks: their sizes, and making and growing them.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::quantity::Amount;
use kubevirt_api::vmi::status::PersistentVolumeClaimInfo;
use kubevirt_disk_image::{
    Allocation, Allowance, Fit, ImageError, Outcome, align_down, create_raw, fit, free_space, grow_raw,
};
use rustix::fs::{Mode, OFlags};

use super::carry_out::Note;
use super::error::Problem;
use super::source::{beneath, failed};

/// A raw image in a folder that is mounted into the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimImage {
    /// The image.
    pub path: PathBuf,
    /// Size to make it with if it is missing, or why it cannot be made.
    pub create: Result<u64, &'static str>,
    /// How large it may become if it is there.
    pub growth: Option<Growth>,
}

/// How large an image may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Bytes of the claim.
    pub capacity: u64,
    /// Thousandths of the file system that it needs for itself.
    pub overhead: u16,
}

/// A number of bytes.
pub fn bytes(field: &'static str, quantity: &Quantity) -> Result<u64, Problem> {
    Amount::of(quantity)
        .ok()
        .and_then(Amount::checked_value)
        .and_then(|value| u64::try_from(value).ok())
        .ok_or_else(|| Problem::Quantity { field, text: quantity.0.clone() })
}

/// The size of a new disk: a whole number of MiB.
pub fn disk_size(bytes: u64) -> Result<u64, Problem> {
    match align_down(bytes) {
        0 => Err(Problem::TooSmall(bytes)),
        size => Ok(size),
    }
}

fn storage(
    field: &'static str,
    quantities: Option<&BTreeMap<String, Quantity>>,
) -> Result<Option<u64>, Problem> {
    quantities.and_then(|all| all.get("storage")).map(|quantity| bytes(field, quantity)).transpose()
}

/// Size to make the image of a claim with: what was asked for, but not more than there is.
pub fn size_of_claim(info: Option<&PersistentVolumeClaimInfo>) -> Result<Result<u64, &'static str>, Problem> {
    let Some(info) = info else { return Ok(Err("nothing is known about its claim")) };
    let capacity = storage("capacity", info.capacity.as_ref())?;
    let requests = storage("requests", info.requests.as_ref())?;
    match [capacity, requests].into_iter().flatten().min() {
        Some(size) => disk_size(size).map(Ok),
        None => Ok(Err("its claim has neither a capacity nor a request")),
    }
}

/// How large the image of a claim may become; nothing if too little is known to be sure.
pub fn growth_of_claim(info: &PersistentVolumeClaimInfo) -> Option<Growth> {
    let capacity = storage("capacity", info.capacity.as_ref()).ok()??;
    let requests = storage("requests", info.requests.as_ref()).ok()??;
    let overhead = thousandths(info.filesystem_overhead.as_deref()?)?;
    Some(Growth { capacity: capacity.min(requests), overhead })
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

/// The size that an image can have where `usable` bytes are free or taken by itself already.
pub fn possible_size(growth: Growth, usable: u64) -> u64 {
    let room = u128::from(growth.capacity.min(usable)) * u128::from(1000 - growth.overhead.min(1000)) / 1000;
    align_down(room as u64)
}

/// Makes an image if it is missing and may be made, and grows it if it may grow.
pub fn make(
    image: &ClaimImage,
    allowance: Allowance,
    notes: &mut Vec<Note>,
    volume: &str,
) -> Result<(), Problem> {
    let Some(file) = open(&image.path)? else {
        let size = image.create.map_err(|why| Problem::NotMade { path: image.path.clone(), why })?;
        return create(&image.path, size, allowance, notes, volume);
    };
    let Some(growth) = image.growth else { return Ok(()) };
    if let Err(problem) = grow(&image.path, &file, growth) {
        // The disk is good as it is, so the machine can start.
        notes.push(Note::NotGrown { volume: volume.into(), reason: problem.to_string() });
    }
    Ok(())
}

/// Opens an image; nothing if it is missing. Links may lead only to files of the same volume.
pub fn open(path: &Path) -> Result<Option<File>, Problem> {
    let folder_path = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder_path, flags, Mode::empty())
        .map_err(|source| failed(folder_path, source.into()))?;
    // Only looked at: its owner may be another user than ours before the handler hands it over.
    let file = match beneath(&folder, name, OFlags::PATH) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(source) => return Err(failed(path, source.into())),
    };
    let metadata = file.metadata().map_err(|source| failed(path, source))?;
    if !metadata.is_file() {
        return Err(ImageError::NotAFile(path.into()).into());
    }
    if metadata.len() == 0 {
        return Err(ImageError::Truncated { path: path.into(), what: "it is empty".into() }.into());
    }
    Ok(Some(file))
}

fn create(
    path: &Path,
    wanted: u64,
    allowance: Allowance,
    notes: &mut Vec<Note>,
    volume: &str,
) -> Result<(), Problem> {
    let free = free_space(path.parent().unwrap_or(Path::new("/")))?;
    let size = match fit(wanted, free, allowance) {
        Fit::Whole(size) => size,
        Fit::Smaller(size) => {
            notes.push(Note::Smaller { volume: volume.into(), wanted, size });
            size
        }
        Fit::TooSmall { available } => {
            let tolerated_percent = allowance.tolerated_percent;
            return Err(Problem::NoSpace { path: path.into(), wanted, available, tolerated_percent });
        }
    };
    create_raw(path, size, Allocation::Sparse)?;
    Ok(())
}

fn grow(path: &Path, file: &File, growth: Growth) -> Result<(), Problem> {
    let metadata = file.metadata().map_err(|source| failed(path, source))?;
    let allocated = metadata.blocks() * 512;
    let size = possible_size(growth, free_space(path)?.saturating_add(allocated));
    if size <= metadata.len() {
        return Ok(());
    }
    let full = allocated >= metadata.len();
    let outcome = grow_raw(path, size, if full { Allocation::Full } else { Allocation::Sparse })?;
    debug_assert_eq!(outcome, Outcome::Made);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

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
            (info(Some("2Gi"), Some("1Gi"), None), Ok(Ok(1024 * MIB))),
            (info(Some("1Gi"), Some("2Gi"), None), Ok(Ok(1024 * MIB))),
            (info(None, Some("3M"), None), Ok(Ok(2 * MIB))),
            (info(Some("1500k"), None, None), Ok(Ok(MIB))),
            (info(None, None, None), Ok(Err("its claim has neither a capacity nor a request"))),
            (info(Some("1000"), None, None), Err("1000 bytes are too few: a disk has at least 1Mi")),
            (info(Some("x"), None, None), Err("capacity is \"x\", which is no number of bytes")),
        ];
        for (info, expected) in cases {
            let size = size_of_claim(Some(&info)).map_err(|problem| problem.to_string());
            assert_eq!(size, expected.map_err(str::to_owned), "{info:?}");
        }
        assert!(size_of_claim(None).unwrap().is_err());
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
            assert_eq!(growth_of_claim(&info), expected, "{info:?}");
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
            assert_eq!(possible_size(growth, usable), expected, "{usable}");
        }
        assert_eq!(possible_size(Growth { capacity: u64::MAX, overhead: 0 }, u64::MAX), align_down(u64::MAX));
    }
}
