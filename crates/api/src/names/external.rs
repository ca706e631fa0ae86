//! Labels and annotations of other projects that KubeVirt reads or writes.

/// Names of Kubernetes itself.
pub mod kubernetes {
    /// Config map in [`SYSTEM_NAMESPACE`]: by what extensions know the API server's aggregator.
    pub const AGGREGATOR_AUTHENTICATION: &str = "extension-apiserver-authentication";
    /// The namespace of the cluster's own components.
    pub const SYSTEM_NAMESPACE: &str = "kube-system";
    /// In what is known of a user: the node that the token was given to.
    pub const NODE_OF_TOKEN: &str = "authentication.kubernetes.io/node-name";
    /// Label: the application by name.
    pub const APP_NAME: &str = "app.kubernetes.io/name";
    /// Label: the version of the application.
    pub const APP_VERSION: &str = "app.kubernetes.io/version";
    /// Label: the product the application belongs to.
    pub const APP_PART_OF: &str = "app.kubernetes.io/part-of";
    /// Label: the role of the object within the application.
    pub const APP_COMPONENT: &str = "app.kubernetes.io/component";
    /// Label: who looks after the object.
    pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
    /// Label on a node: its architecture.
    pub const ARCH: &str = "kubernetes.io/arch";
    /// Label on a node: its operating system.
    pub const OS: &str = "kubernetes.io/os";
    /// Label on a node: its host name.
    pub const HOSTNAME: &str = "kubernetes.io/hostname";
    /// Label on a node of the control plane.
    pub const NODE_ROLE_CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
    /// Label on a node of the control plane of old clusters.
    pub const NODE_ROLE_MASTER: &str = "node-role.kubernetes.io/master";
    /// Label on a node for workloads.
    pub const NODE_ROLE_WORKER: &str = "node-role.kubernetes.io/worker";
    /// Annotation on a pod: the container that `kubectl` picks.
    pub const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";
    /// Annotation: what `kubectl apply` was last given.
    pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    /// Annotation on a deployment: its revision.
    pub const DEPLOYMENT_REVISION: &str = "deployment.kubernetes.io/revision";
    /// Annotation on the default storage class.
    pub const DEFAULT_STORAGE_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
    /// Annotation on the default snapshot class.
    pub const DEFAULT_SNAPSHOT_CLASS: &str = "snapshot.storage.kubernetes.io/is-default-class";
    /// Label on roles that come with the cluster.
    pub const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";
    /// Annotation on roles the API server keeps up to date.
    pub const RBAC_AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
    /// Label on a role that adds to the one of administrators.
    pub const AGGREGATE_TO_ADMIN: &str = "rbac.authorization.k8s.io/aggregate-to-admin";
    /// Label on a role that adds to the one of editors.
    pub const AGGREGATE_TO_EDIT: &str = "rbac.authorization.k8s.io/aggregate-to-edit";
    /// Label on a role that adds to the one of viewers.
    pub const AGGREGATE_TO_VIEW: &str = "rbac.authorization.k8s.io/aggregate-to-view";
    /// Annotation on a claim: what it is cloned from.
    pub const CLONE_REQUEST: &str = "k8s.io/CloneRequest";
    /// Annotation on a claim that was cloned.
    pub const CLONE_OF: &str = "k8s.io/CloneOf";
}

/// Names of the cluster autoscaler and the descheduler.
pub mod autoscaler {
    /// Annotation on a pod: whether its node may be removed.
    pub const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
    /// Annotation on a pod that may be descheduled.
    pub const DESCHEDULER_EVICT: &str = "descheduler.alpha.kubernetes.io/evict";
    /// Annotation on a pod better left alone.
    pub const DESCHEDULER_PREFER_NO_EVICTION: &str = "descheduler.alpha.kubernetes.io/prefer-no-eviction";
    /// Annotation on a pod that leaves in its own time.
    pub const DESCHEDULER_REQUEST_EVICT_ONLY: &str = "descheduler.alpha.kubernetes.io/request-evict-only";
    /// Annotation on an eviction: who asks for it.
    pub const REQUESTED_BY: &str = "requested-by";
    /// The descheduler, as the value of [`REQUESTED_BY`].
    pub const DESCHEDULER: &str = "sigs.k8s.io/descheduler";
    /// Annotation on a pod that is about to leave.
    pub const DESCHEDULER_EVICTION_IN_PROGRESS: &str = "descheduler.alpha.kubernetes.io/eviction-in-progress";
}

/// Names of Multus.
pub mod multus {
    /// Annotation on a pod: the networks to attach.
    pub const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";
    /// Annotation on a pod: the networks as attached.
    pub const NETWORK_STATUS: &str = "k8s.v1.cni.cncf.io/network-status";
    /// Annotation on a network: the device resource it needs.
    pub const RESOURCE_NAME: &str = "k8s.v1.cni.cncf.io/resourceName";
    /// Annotation on a pod: its primary network.
    pub const DEFAULT_NETWORK: &str = "v1.multus-cni.io/default-network";
}

/// Names of Istio.
pub mod istio {
    /// Label on a pod and annotation on an instance: whether it gets a proxy.
    pub const INJECT: &str = "sidecar.istio.io/inject";
    /// Annotation on a pod: interfaces of guests, for old releases.
    pub const KUBEVIRT_INTERFACES: &str = "traffic.sidecar.istio.io/kubevirtInterfaces";
    /// Annotation on a pod: interfaces of guests.
    pub const REROUTE_INTERFACES: &str = "istio.io/reroute-virtual-interfaces";
}

/// Names of the containerized data importer.
pub mod cdi {
    /// Annotation: binds the volume before a pod uses it.
    pub const BIND_IMMEDIATE: &str = "cdi.kubevirt.io/storage.bind.immediate.requested";
    /// Annotation on a claim: a disk image or an archive.
    pub const CONTENT_TYPE: &str = "cdi.kubevirt.io/storage.contentType";
    /// Annotation: whether a finished data volume goes away.
    pub const DELETE_AFTER_COMPLETION: &str = "cdi.kubevirt.io/storage.deleteAfterCompletion";
    /// Annotation on a claim: the phase of the pod that fills it.
    pub const POD_PHASE: &str = "cdi.kubevirt.io/storage.pod.phase";
    /// Annotation on a claim: whether that pod is ready.
    pub const POD_READY: &str = "cdi.kubevirt.io/storage.pod.ready";
    /// Annotation on a claim: the data volume it was filled for.
    pub const POPULATED_FOR: &str = "cdi.kubevirt.io/storage.populatedFor";
    /// Annotation on a data volume whose claim is filled already.
    pub const PRE_POPULATED: &str = "cdi.kubevirt.io/storage.prePopulated";
    /// Annotation on a data volume that may find its volume made.
    pub const CHECK_STATIC_VOLUME: &str = "cdi.kubevirt.io/storage.checkStaticVolume";
    /// Annotation on a data volume that may take over a claim.
    pub const CLAIM_ADOPTION: &str = "cdi.kubevirt.io/allowClaimAdoption";
    /// Annotation: whether a volume populator does the work.
    pub const USE_POPULATOR: &str = "cdi.kubevirt.io/storage.usePopulator";
    /// Annotation on a claim: the one the populator fills.
    pub const PVC_PRIME: &str = "cdi.kubevirt.io/storage.populator.pvcPrime";
    /// Annotation on a claim that waits for an upload.
    pub const UPLOAD_TARGET: &str = "cdi.kubevirt.io/storage.upload.target";
    /// Label on a claim completed from its storage profile.
    pub const APPLY_STORAGE_PROFILE: &str = "cdi.kubevirt.io/applyStorageProfile";
}

/// Names of Velero.
pub mod velero {
    /// Annotation on a pod: where to run the hook before a backup.
    pub const PRE_BACKUP_CONTAINER: &str = "pre.hook.backup.velero.io/container";
    /// Annotation on a pod: the hook before a backup.
    pub const PRE_BACKUP_COMMAND: &str = "pre.hook.backup.velero.io/command";
    /// Annotation on a pod: how long that hook may take.
    pub const PRE_BACKUP_TIMEOUT: &str = "pre.hook.backup.velero.io/timeout";
    /// Annotation on a pod: where to run the hook after a backup.
    pub const POST_BACKUP_CONTAINER: &str = "post.hook.backup.velero.io/container";
    /// Annotation on a pod: the hook after a backup.
    pub const POST_BACKUP_COMMAND: &str = "post.hook.backup.velero.io/command";
}

/// Names of OpenShift.
pub mod openshift {
    /// Annotation on a pod: the security context constraint it needs.
    pub const REQUIRED_SCC: &str = "openshift.io/required-scc";
    /// Label on a namespace or rule that the cluster monitors.
    pub const CLUSTER_MONITORING: &str = "openshift.io/cluster-monitoring";
}
