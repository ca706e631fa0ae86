//! What must be made for the volumes of a VMI, decided from the VMI alone.

use std::path::PathBuf;

use kubevirt_api::names::annotations;
use kubevirt_api::vmi::status::{PersistentVolumeClaimInfo, VolumePhase, VolumeStatus};
use kubevirt_api::vmi::volumes::{HostDisk, HostDiskType, Volume};
use kubevirt_domain::layout::Iso;
use kubevirt_domain::sizes::{self, Growth};

use super::claims::{ClaimImage, size_of_claim};
use super::cloud_init::{self, SeedPlan};
use super::error::{Problem, VolumeError};
use super::{Purpose, Request};

/// Label of an ISO image that has none in the VMI.
const DEFAULT_LABEL: &str = "cfgdata";
/// Label of the ISO image with Windows' answer file.
const SYSPREP_LABEL: &str = "unattendCD";

/// What must be made for one volume.
#[derive(Clone, Debug, PartialEq)]
pub struct Preparation {
    /// Name of the volume; `kernelBoot` and `ignition` for those.
    pub volume: String,
    /// Space that the guest frees may be given back.
    pub discard: bool,
    /// What must be made.
    pub work: Work,
}

/// What must be made.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// A layer for writes over a container disk.
    ContainerDisk {
        /// The container disk.
        image: ImageFile,
        /// The layer.
        overlay: PathBuf,
    },
    /// A kernel or initial RAM disk must be there.
    Kernel(ImageFile),
    /// The image of a claim, or its device.
    Claim {
        /// The device, if the claim is one.
        device: PathBuf,
        /// The image, if the claim is a file system.
        image: ClaimImage,
    },
    /// A layer for writes over a claim.
    Ephemeral {
        /// The device, if the claim is one.
        device: PathBuf,
        /// The image, if the claim is a file system.
        file: PathBuf,
        /// The layer.
        overlay: PathBuf,
    },
    /// A volume that was added while the machine ran, or that its machine runs on, must be there.
    Existing {
        /// The device, if it is one.
        device: PathBuf,
        /// The image, if it is one.
        file: PathBuf,
        /// How large the image may become.
        growth: Option<Growth>,
    },
    /// A scratch disk.
    EmptyDisk {
        /// The image.
        path: PathBuf,
        /// Its size.
        size: u64,
    },
    /// An image in a folder of the host.
    HostDisk(ClaimImage),
    /// A seed for cloud-init.
    CloudInit(SeedPlan),
    /// An ISO image of a mounted folder.
    Iso {
        /// The image.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
        /// Its label.
        label: String,
        /// It must hold an answer file for Windows.
        needs_answer_file: bool,
    },
    /// An image that is copied from the other node.
    Received {
        /// The image.
        path: PathBuf,
        /// Its size.
        size: u64,
    },
    /// The disk with the host's metrics.
    Metrics(PathBuf),
    /// A folder that takes dumps of the guest's memory must be there.
    MemoryDump(PathBuf),
    /// Data for Ignition.
    Ignition {
        /// The file.
        path: PathBuf,
        /// What it holds.
        data: String,
    },
}

/// A file that comes in a container image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFile {
    /// Where it is looked for.
    pub place: PathBuf,
    /// Where the whole image is, if the cluster mounts images.
    pub mount: PathBuf,
    /// Path of the file in the image; if none, the only file in `/disk`.
    pub file: Option<String>,
}

/// Decides what must be made for the volumes of a VMI.
pub fn plan(request: &Request<'_>) -> Result<Vec<Preparation>, Vec<VolumeError>> {
    let mut plan = Vec::new();
    let mut errors = Vec::new();
    let mut add = |volume: &str, discard: bool, work: Result<Option<Work>, Problem>| match work {
        Ok(Some(work)) => plan.push(Preparation { volume: volume.into(), discard, work }),
        Ok(None) => {}
        Err(problem) => errors.push(VolumeError { volume: volume.into(), problem }),
    };
    for (index, volume) in request.vmi.spec.volumes.iter().flatten().enumerate() {
        let place = Place::new(request, index, volume);
        let discard = place.info().is_none_or(|info| info.preallocated != Some(true));
        add(&volume.name, discard, place.work());
    }
    if request.purpose != Purpose::Hotplug {
        for kernel in kernels(request) {
            add("kernelBoot", true, Ok(Some(kernel)));
        }
        add("ignition", true, Ok(ignition(request)));
    }
    if errors.is_empty() { Ok(plan) } else { Err(errors) }
}

/// A volume and what the VMI says about it elsewhere.
struct Place<'a> {
    request: &'a Request<'a>,
    index: usize,
    volume: &'a Volume,
    status: Option<&'a VolumeStatus>,
}

impl<'a> Place<'a> {
    fn new(request: &'a Request<'a>, index: usize, volume: &'a Volume) -> Self {
        let known = request.vmi.status.as_ref().and_then(|status| status.volume_status.as_ref());
        let status = known.into_iter().flatten().find(|status| status.name == volume.name);
        Self { request, index, volume, status }
    }

    fn info(&self) -> Option<&'a PersistentVolumeClaimInfo> {
        self.status?.persistent_volume_claim_info.as_ref()
    }

    fn work(&self) -> Result<Option<Work>, Problem> {
        let (layout, volume, name) = (self.request.layout, self.volume, self.volume.name.as_str());
        check_name(name)?;
        if self.is_hotplugged() {
            return Ok(self.hotplugged());
        }
        if volume.persistent_volume_claim.is_some() || volume.data_volume.is_some() {
            return self.claim();
        }
        if self.request.purpose == Purpose::Hotplug {
            return Ok(None);
        }
        if let Some(container) = &volume.container_disk {
            let image = ImageFile {
                place: layout.container_disk(self.index).into(),
                mount: layout.image_volume(self.index).into(),
                file: container.path.clone().filter(|path| !path.is_empty()),
            };
            return Ok(Some(Work::ContainerDisk { image, overlay: layout.overlay(name).into() }));
        }
        if volume.ephemeral.is_some() {
            let (device, file) = (layout.claim_block(name).into(), layout.claim_file(name).into());
            return Ok(Some(Work::Ephemeral { device, file, overlay: layout.overlay(name).into() }));
        }
        if let Some(empty) = &volume.empty_disk {
            let size = sizes::of_disk(sizes::bytes("emptyDisk.capacity", &empty.capacity)?)?;
            return Ok(Some(Work::EmptyDisk { path: layout.empty_disk(name).into(), size }));
        }
        if let Some(disk) = &volume.host_disk {
            return self.host_disk(disk).map(Some);
        }
        if volume.downward_metrics.is_some() {
            return Ok(Some(Work::Metrics(layout.downward_metrics_disk().into())));
        }
        self.made_here()
    }

    /// What the launcher writes itself, or receives from the launcher of the other node.
    fn made_here(&self) -> Result<Option<Work>, Problem> {
        let work = match cloud_init::plan(self.request, self.volume)? {
            Some(seed) => Work::CloudInit(seed),
            None => match self.iso() {
                Some(work) => work,
                None => return Ok(None),
            },
        };
        if self.request.purpose != Purpose::MigrationTarget {
            return Ok(Some(work));
        }
        let path = match work {
            Work::CloudInit(seed) => seed.path,
            Work::Iso { path, .. } => path,
            work => return Ok(Some(work)),
        };
        let size = self.status.and_then(|status| status.size).and_then(|size| u64::try_from(size).ok());
        let size = size.filter(|size| *size > 0).ok_or(Problem::UnknownSize)?;
        Ok(Some(Work::Received { path, size }))
    }

    fn iso(&self) -> Option<Work> {
        let (layout, volume, name) = (self.request.layout, self.volume, self.volume.name.as_str());
        let label = |label: &Option<String>| {
            label.clone().filter(|label| !label.is_empty()).unwrap_or_else(|| DEFAULT_LABEL.into())
        };
        let (kind, label) = if let Some(source) = &volume.sysprep {
            if source.config_map.is_none() && source.secret.is_none() {
                return None;
            }
            (Iso::Sysprep, SYSPREP_LABEL.into())
        } else if !self.is_disk() {
            // Shared as a folder, or used for something else, such as ACPI tables.
            return None;
        } else if let Some(source) = &volume.config_map {
            (Iso::ConfigMap, label(&source.volume_label))
        } else if let Some(source) = &volume.secret {
            (Iso::Secret, label(&source.volume_label))
        } else if let Some(source) = &volume.downward_api {
            (Iso::DownwardApi, label(&source.volume_label))
        } else if volume.service_account.is_some() {
            return Some(Work::Iso {
                path: layout.service_account().into(),
                folder: layout.service_account.clone().into(),
                label: DEFAULT_LABEL.into(),
                needs_answer_file: false,
            });
        } else {
            return None;
        };
        Some(Work::Iso {
            path: layout.iso(kind, name).into(),
            folder: layout.iso_source(kind, name).into(),
            label,
            needs_answer_file: kind == Iso::Sysprep,
        })
    }

    fn claim(&self) -> Result<Option<Work>, Problem> {
        let devices = &self.request.vmi.spec.domain.devices;
        let mut folders = devices.filesystems.iter().flatten();
        if folders.any(|folder| folder.name == self.volume.name) {
            return Ok(None);
        }
        let (layout, name) = (self.request.layout, self.volume.name.as_str());
        let (device, file) = (layout.claim_block(name).into(), layout.claim_file(name).into());
        if self.request.purpose == Purpose::Hotplug {
            return Ok(Some(Work::Existing { device, file, growth: self.growth() }));
        }
        let growth = self.growth().filter(|_| self.request.purpose == Purpose::Start);
        let image = ClaimImage { path: file, create: size_of_claim(self.info())?, growth };
        Ok(Some(Work::Claim { device, image }))
    }

    fn growth(&self) -> Option<Growth> {
        self.info().filter(|_| self.is_writable_disk()).and_then(Growth::of_claim)
    }

    fn host_disk(&self, disk: &HostDisk) -> Result<Work, Problem> {
        let create = match (&disk.type_, &disk.capacity) {
            (HostDiskType::DiskOrCreate, Some(_)) => Ok(sizes::of_host_disk(disk.capacity.as_ref())?),
            (HostDiskType::DiskOrCreate, None) => Err("hostDisk.capacity is not set"),
            _ => Err("hostDisk.type is not DiskOrCreate"),
        };
        let path: PathBuf = self.request.layout.host_disk(&self.volume.name, &disk.path).into();
        check_name(path.file_name().and_then(|name| name.to_str()).unwrap_or_default())?;
        Ok(Work::HostDisk(ClaimImage { path, create, growth: None }))
    }

    fn is_hotplugged(&self) -> bool {
        let volume = self.volume;
        let claim = volume.persistent_volume_claim.as_ref().and_then(|claim| claim.hotpluggable);
        let data = volume.data_volume.as_ref().and_then(|data| data.hotpluggable);
        let hotpluggable = claim.or(data) == Some(true) || volume.memory_dump.is_some();
        // One that is there from the start has a status without an attachment.
        match self.status {
            Some(status) => status.hotplug_volume.is_some() || volume.memory_dump.is_some(),
            None => hotpluggable,
        }
    }

    fn hotplugged(&self) -> Option<Work> {
        let phase = self.status?.phase.as_ref()?;
        let mounted = matches!(phase, VolumePhase::MountedToPod | VolumePhase::Ready);
        let (layout, name) = (self.request.layout, self.volume.name.as_str());
        if self.volume.memory_dump.is_some() {
            // A dump is a file in the claim's folder, which bears the name that a device would.
            return mounted.then(|| Work::MemoryDump(layout.hotplug(name, true).into()));
        }
        mounted.then(|| Work::Existing {
            device: layout.hotplug(name, true).into(),
            file: layout.hotplug(name, false).into(),
            growth: self.growth(),
        })
    }

    fn is_disk(&self) -> bool {
        let mut disks = self.request.vmi.spec.domain.devices.disks.iter().flatten();
        disks.any(|disk| disk.name == self.volume.name)
    }

    fn is_writable_disk(&self) -> bool {
        let mut disks = self.request.vmi.spec.domain.devices.disks.iter().flatten();
        disks.any(|disk| disk.name == self.volume.name && disk.cdrom.is_none())
    }
}

/// Names become parts of paths.
pub fn check_name(name: &str) -> Result<(), Problem> {
    let wrong = matches!(name, "" | "." | "..") || name.len() > 255 || name.contains(['/', '\0']);
    if wrong { Err(Problem::Name(name.into())) } else { Ok(()) }
}

fn kernels(request: &Request<'_>) -> Vec<Work> {
    let firmware = request.vmi.spec.domain.firmware.as_ref();
    let Some(container) =
        firmware.and_then(|firmware| firmware.kernel_boot.as_ref()).and_then(|boot| boot.container.as_ref())
    else {
        return Vec::new();
    };
    [&container.kernel_path, &container.initrd_path]
        .into_iter()
        .flatten()
        .filter(|path| !path.is_empty())
        .map(|path| {
            Work::Kernel(ImageFile {
                place: request.layout.kernel_artifact(path).into(),
                mount: request.layout.kernel_image.clone().into(),
                file: Some(path.clone()),
            })
        })
        .collect()
}

fn ignition(request: &Request<'_>) -> Option<Work> {
    let metadata = &request.vmi.metadata;
    let data = metadata.annotations.as_ref()?.get(annotations::IGNITION_DATA)?;
    let (namespace, name) = (metadata.namespace.as_deref()?, metadata.name.as_deref()?);
    let path = request.layout.ignition(namespace, name).into();
    (!data.is_empty()).then(|| Work::Ignition { path, data: data.clone() })
}
