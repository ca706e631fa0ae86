//! Finalizers, which hold a deleted object until its work is done.

/// On an instance until its guest has stopped and its node is clean.
pub const FOREGROUND_DELETE: &str = "kubevirt.io/foregroundDeleteVirtualMachine";
/// What older releases wrote for [`FOREGROUND_DELETE`].
pub const DEPRECATED_FOREGROUND_DELETE: &str = "foregroundDeleteVirtualMachine";
/// On a machine and its instance until the machine has noted the end.
pub const VM_CONTROLLER: &str = "kubevirt.io/virtualMachineControllerFinalize";
/// On a migration until it has come to an end.
pub const MIGRATION: &str = "kubevirt.io/migrationJobFinalize";
/// On a migration between clusters until both sides agree.
pub const SYNCHRONIZATION: &str = "synchronization.kubevirt.io/migrationFinalizer";
/// On component resources so that the operator deletes them in order.
pub const VIRT_OPERATOR: &str = "kubevirt.io/virtOperatorFinalizer";
/// On the installation until everything it installed is gone.
pub const KUBEVIRT: &str = "kubevirt.io/foregroundDeleteKubeVirt";
/// What older releases wrote for [`KUBEVIRT`].
pub const DEPRECATED_KUBEVIRT: &str = "foregroundDeleteKubeVirt";
/// On machines of a pool until the pool has kept what it must keep.
pub const POOL: &str = "pool.kubevirt.io/finalizer";
/// On a snapshot until its content is dealt with.
pub const SNAPSHOT: &str = "snapshot.kubevirt.io/vmsnapshot-protection";
/// On the content of a snapshot until its volume snapshots are dealt with.
pub const SNAPSHOT_CONTENT: &str = "snapshot.kubevirt.io/vmsnapshotcontent-protection";
/// On a machine while a snapshot of it is being taken.
pub const SNAPSHOT_SOURCE: &str = "snapshot.kubevirt.io/snapshot-source-protection";
/// On a restore until it is done or undone.
pub const RESTORE: &str = "snapshot.kubevirt.io/vmrestore-protection";
/// On a backup until the instance has let go of it.
pub const BACKUP: &str = "backup.kubevirt.io/vmbackup-protection";
