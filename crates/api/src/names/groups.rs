//! API groups, as they stand before the slash of an `apiVersion`.

/// Virtual machines, their instances, migrations and the installation itself.
pub const KUBEVIRT: &str = "kubevirt.io";
/// [`KUBEVIRT`] with the version that its objects are stored in, as an `apiVersion` says it.
pub const KUBEVIRT_V1: &str = "kubevirt.io/v1";
/// Actions on running machines: console, start, migrate and the like.
pub const SUBRESOURCES: &str = "subresources.kubevirt.io";
/// Instance types and preferences.
pub const INSTANCETYPE: &str = "instancetype.kubevirt.io";
/// Pools of alike virtual machines.
pub const POOL: &str = "pool.kubevirt.io";
/// Snapshots and restores.
pub const SNAPSHOT: &str = "snapshot.kubevirt.io";
/// Clones.
pub const CLONE: &str = "clone.kubevirt.io";
/// Exports of disks and machines.
pub const EXPORT: &str = "export.kubevirt.io";
/// Backups and their trackers.
pub const BACKUP: &str = "backup.kubevirt.io";
/// Migration policies.
pub const MIGRATIONS: &str = "migrations.kubevirt.io";
/// Plugins.
pub const PLUGIN: &str = "plugin.kubevirt.io";
/// Templates and requests to make one.
pub const TEMPLATE: &str = "template.kubevirt.io";
/// Actions on templates.
pub const TEMPLATE_SUBRESOURCES: &str = "subresources.template.kubevirt.io";
/// The containerized data importer: data volumes and their sources.
pub const CDI: &str = "cdi.kubevirt.io";
/// Volume snapshots of the storage drivers.
pub const VOLUME_SNAPSHOT: &str = "snapshot.storage.k8s.io";
/// Prometheus rules and service monitors.
pub const MONITORING: &str = "monitoring.coreos.com";
/// Network attachment definitions of Multus.
pub const NETWORK_ATTACHMENT: &str = "k8s.cni.cncf.io";
/// Evictions and disruption budgets of Kubernetes.
pub const POLICY: &str = "policy";
/// Security context constraints of OpenShift.
pub const SECURITY_OPENSHIFT: &str = "security.openshift.io";
/// Routes of OpenShift.
pub const ROUTE_OPENSHIFT: &str = "route.openshift.io";
