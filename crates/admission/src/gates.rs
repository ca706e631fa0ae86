//! Feature gates: what each is called, how far along it is, and whether it is on.

use kubevirt_api::kubevirt::configuration::DeveloperConfiguration;

/// How far along a feature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Off unless asked for.
    Alpha,
    /// On unless disabled.
    Beta,
    /// Always on; naming the gate changes nothing.
    GeneralAvailability,
    /// Off unless asked for, and soon gone.
    Deprecated,
    /// Gone; naming the gate changes nothing.
    Discontinued,
}

macro_rules! gates {
    ($($gate:ident = $name:literal, $stage:ident;)+) => {
        /// A feature gate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Gate {
            $(#[doc = concat!("`", $name, "`")] $gate,)+
        }

        impl Gate {
            /// Every gate.
            pub const ALL: &'static [Gate] = &[$(Gate::$gate),+];

            /// The gate as the configuration names it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$gate => $name,)+ }
            }

            /// How far along the feature is.
            pub fn stage(self) -> Stage {
                match self { $(Self::$gate => Stage::$stage,)+ }
            }

            /// The gate of this name.
            pub fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$gate),)+ _ => None }
            }
        }
    };
}

gates! {
    AlignCpus = "AlignCPUs", Alpha;
    AutoResourceLimits = "AutoResourceLimitsGate", GeneralAvailability;
    BochsDisplayForEfiGuests = "BochsDisplayForEFIGuests", GeneralAvailability;
    CpuManager = "CPUManager", Alpha;
    CpuNodeDiscovery = "CPUNodeDiscovery", GeneralAvailability;
    ClusterProfiler = "ClusterProfiler", GeneralAvailability;
    CommonInstancetypesDeployment = "CommonInstancetypesDeploymentGate", GeneralAvailability;
    ConfigurableHypervisor = "ConfigurableHypervisor", Alpha;
    ContainerPathVolumes = "ContainerPathVolumes", Alpha;
    CrossArchitectureVirtualization = "CrossArchitectureVirtualization", Alpha;
    DecentralizedLiveMigration = "DecentralizedLiveMigration", Alpha;
    DeclarativeHotplugVolumes = "DeclarativeHotplugVolumes", Beta;
    DisableCustomSelinuxPolicy = "DisableCustomSELinuxPolicy", GeneralAvailability;
    DisableMdevConfiguration = "DisableMDEVConfiguration", Deprecated;
    DockerSelinuxMcsWorkaround = "DockerSELinuxMCSWorkaround", Deprecated;
    DownwardMetrics = "DownwardMetrics", Alpha;
    DynamicPodInterfaceNaming = "DynamicPodInterfaceNaming", GeneralAvailability;
    VirtiofsConfigVolumes = "EnableVirtioFsConfigVolumes", GeneralAvailability;
    VirtiofsStorageVolumes = "EnableVirtioFsStorageVolumes", Alpha;
    ExpandDisks = "ExpandDisks", GeneralAvailability;
    Ignition = "ExperimentalIgnitionSupport", Alpha;
    ExperimentalVirtiofs = "ExperimentalVirtiofsSupport", Discontinued;
    ExternalNetResourceInjection = "ExternalNetResourceInjection", Beta;
    FirmwareAutoSelection = "FirmwareAutoSelection", Alpha;
    Gpu = "GPU", GeneralAvailability;
    GpusWithDra = "GPUsWithDRA", Beta;
    GraceIoVirtualization = "GraceIOVirtualization", Alpha;
    HostDevices = "HostDevices", Alpha;
    HostDevicesWithDra = "HostDevicesWithDRA", Beta;
    HostDisk = "HostDisk", Alpha;
    HotplugNics = "HotplugNICs", GeneralAvailability;
    HotplugVolumes = "HotplugVolumes", Deprecated;
    HypervStrictCheck = "HypervStrictCheck", Alpha;
    Iommufd = "IOMMUFD", Alpha;
    ImageVolume = "ImageVolume", Beta;
    IncrementalBackup = "IncrementalBackup", Alpha;
    InstancetypeReferencePolicy = "InstancetypeReferencePolicy", GeneralAvailability;
    KubevirtSeccompProfile = "KubevirtSeccompProfile", Beta;
    LibvirtHooksServerAndClient = "LibvirtHooksServerAndClient", Beta;
    LiveMigration = "LiveMigration", GeneralAvailability;
    LiveUpdateNadRef = "LiveUpdateNADRef", GeneralAvailability;
    Macvtap = "Macvtap", Discontinued;
    MigrationPriorityQueue = "MigrationPriorityQueue", GeneralAvailability;
    MigrationStallDetection = "MigrationStallDetection", Alpha;
    MultiArchitecture = "MultiArchitecture", Deprecated;
    Numa = "NUMA", GeneralAvailability;
    NetworkBindingPlugins = "NetworkBindingPlugins", GeneralAvailability;
    NetworkDevicesWithDra = "NetworkDevicesWithDRA", Alpha;
    NodeRestriction = "NodeRestriction", Beta;
    NonRoot = "NonRoot", GeneralAvailability;
    OciExport = "OCIExport", Alpha;
    ObjectGraph = "ObjectGraph", Alpha;
    OptOutRoleAggregation = "OptOutRoleAggregation", Beta;
    PciNumaAwareTopology = "PCINUMAAwareTopology", Alpha;
    Psa = "PSA", GeneralAvailability;
    PanicDevices = "PanicDevices", GeneralAvailability;
    Passt = "Passt", Discontinued;
    PasstBinding = "PasstBinding", Beta;
    PasstIpStackMigration = "PasstIPStackMigration", Discontinued;
    PersistentReservation = "PersistentReservation", GeneralAvailability;
    Plugins = "Plugins", Alpha;
    PodSecondaryInterfaceNamingUpgrade = "PodSecondaryInterfaceNamingUpgrade", Beta;
    PortRangesSpec = "PortRangesSpec", Alpha;
    RebootPolicy = "RebootPolicy", Beta;
    ReservedOverheadMemlock = "ReservedOverheadMemlock", Alpha;
    Root = "Root", Alpha;
    SriovLiveMigration = "SRIOVLiveMigration", GeneralAvailability;
    SecureExecution = "SecureExecution", GeneralAvailability;
    Sidecar = "Sidecar", Alpha;
    Snapshot = "Snapshot", Beta;
    Template = "Template", Beta;
    UtilityVolumes = "UtilityVolumes", Alpha;
    VgpuLiveMigration = "VGPULiveMigration", Alpha;
    VmExport = "VMExport", GeneralAvailability;
    VmLiveUpdateFeatures = "VMLiveUpdateFeatures", GeneralAvailability;
    VmPersistentState = "VMPersistentState", GeneralAvailability;
    VmStatsCollector = "VMStatsCollector", Alpha;
    Vsock = "VSOCK", Alpha;
    VideoConfig = "VideoConfig", GeneralAvailability;
    VmiMemoryOverheadReport = "VmiMemoryOverheadReport", Beta;
    VolumeMigration = "VolumeMigration", GeneralAvailability;
    VolumesUpdateStrategy = "VolumesUpdateStrategy", GeneralAvailability;
    WorkloadEncryptionSev = "WorkloadEncryptionSEV", Beta;
    WorkloadEncryptionTdx = "WorkloadEncryptionTDX", Alpha;
}

impl Gate {
    /// Whether the feature is on: asked for, or on by itself and not disabled.
    pub fn enabled(self, configuration: Option<&DeveloperConfiguration>) -> bool {
        let listed =
            |gates: Option<&Vec<String>>| gates.into_iter().flatten().any(|gate| gate == self.name());
        if self.stage() == Stage::GeneralAvailability {
            return true;
        }
        if configuration.is_some_and(|c| listed(c.feature_gates.as_ref())) {
            return true;
        }
        let disabled = configuration.is_some_and(|c| listed(c.disabled_feature_gates.as_ref()));
        self.stage() == Stage::Beta && !disabled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(on: &[&str], off: &[&str]) -> DeveloperConfiguration {
        let names = |list: &[&str]| Some(list.iter().map(|gate| (*gate).to_owned()).collect());
        DeveloperConfiguration {
            feature_gates: names(on),
            disabled_feature_gates: names(off),
            ..DeveloperConfiguration::default()
        }
    }

    #[test]
    fn a_gate_follows_its_stage_unless_the_configuration_says_otherwise() {
        let cases = [
            (Gate::HostDisk, &[][..], &[][..], false),
            (Gate::HostDisk, &["HostDisk"], &[], true),
            (Gate::HostDisk, &["HostDisk"], &["HostDisk"], true),
            (Gate::Snapshot, &[], &[], true),
            (Gate::Snapshot, &[], &["Snapshot"], false),
            (Gate::LiveMigration, &[], &["LiveMigration"], true),
            (Gate::HotplugVolumes, &[], &[], false),
            (Gate::HotplugVolumes, &["HotplugVolumes"], &[], true),
        ];
        for (gate, on, off, expected) in cases {
            assert_eq!(gate.enabled(Some(&configuration(on, off))), expected, "{gate:?} {on:?} {off:?}");
        }
        assert!(Gate::Snapshot.enabled(None) && !Gate::HostDisk.enabled(None));
    }

    #[test]
    fn every_gate_is_found_by_its_name() {
        for gate in Gate::ALL {
            assert_eq!(Gate::named(gate.name()), Some(*gate));
        }
        assert_eq!(Gate::named("NoSuchGate"), None);
    }
}
