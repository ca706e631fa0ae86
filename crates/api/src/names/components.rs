//! Components of the installation, and what belongs to them.

/// Admission and subresources; also the name of its Service.
pub const API: &str = "virt-api";
/// Makes instances of machines and pods of instances.
pub const CONTROLLER: &str = "virt-controller";
/// Looks after the instances of a node.
pub const HANDLER: &str = "virt-handler";
/// Installs and updates the others.
pub const OPERATOR: &str = "virt-operator";
/// Runs one instance.
pub const LAUNCHER: &str = "virt-launcher";
/// Asks the launcher's hypervisor what a node can do.
pub const NODE_LABELLER: &str = "node-labeller";

/// The priority class of the components.
pub const PRIORITY_CLASS: &str = "kubevirt-cluster-critical";

/// Services.
pub mod services {
    /// Where the operator's webhooks are.
    pub const OPERATOR_WEBHOOK: &str = "kubevirt-operator-webhook";
    /// Where the metrics of all components are.
    pub const METRICS: &str = "kubevirt-prometheus-metrics";
}

/// Secrets with certificates and their keys, and config maps of authorities.
pub mod secrets {
    /// The authority of all certificates; the config map of this name has the certificates to trust.
    pub const CA: &str = "kubevirt-ca";
    /// The key of [`CA`]'s config map.
    pub const CA_BUNDLE: &str = "ca-bundle";
    /// virt-api as a server.
    pub const API: &str = "kubevirt-virt-api-certs";
    /// virt-controller as a server.
    pub const CONTROLLER: &str = "kubevirt-controller-certs";
    /// virt-operator as a server.
    pub const OPERATOR: &str = "kubevirt-operator-certs";
    /// Clients of virt-handler: virt-api.
    pub const HANDLER_CLIENT: &str = "kubevirt-virt-handler-certs";
    /// virt-handler as a server.
    pub const HANDLER_SERVER: &str = "kubevirt-virt-handler-server-certs";
    /// virt-handler as the source of a migration.
    pub const HANDLER_MIGRATION_CLIENT: &str = "kubevirt-virt-handler-migration-client-certs";
    /// virt-handler as a client of guests.
    pub const HANDLER_VSOCK_CLIENT: &str = "kubevirt-virt-handler-vsock-client-certs";
    /// Who collects the metrics of virt-handler.
    pub const HANDLER_MONITORING_CLIENT: &str = "kubevirt-virt-handler-monitoring-client-certs";
}

/// Common names of certificates, by which peers know each other.
pub mod certificate_names {
    /// Of the authority.
    pub const CA: &str = "kubevirt.io";
    /// Of virt-handler as a server.
    pub const HANDLER_SERVER: &str = "kubevirt.io:system:node:virt-handler";
    /// Of clients of virt-handler.
    pub const HANDLER_CLIENT: &str = "kubevirt.io:system:client:virt-handler";
    /// Of the source of a migration.
    pub const MIGRATION_CLIENT: &str = "kubevirt.io:system:client:migration";
    /// Of clients of guests.
    pub const VSOCK_CLIENT: &str = "kubevirt.io:system:client:vsock";
    /// Of who collects metrics.
    pub const MONITORING_CLIENT: &str = "kubevirt.io:system:client:monitoring";

    /// Of a server that is called by its Service.
    pub fn of_service(service: &str, namespace: &str) -> String {
        format!("{service}.{namespace}.pod.cluster.local")
    }
}

/// Webhook configurations.
pub mod webhooks {
    /// Defaults.
    pub const MUTATING: &str = "virt-api-mutator";
    /// Verdicts.
    pub const VALIDATING: &str = "virt-api-validator";
    /// Verdicts on the installation itself.
    pub const OPERATOR_VALIDATING: &str = "virt-operator-validator";
}

/// Admission policies.
pub mod policies {
    /// Holds the handlers to their own nodes, and to labels and annotations that are theirs.
    pub const NODE_RESTRICTION: &str = "kubevirt-node-restriction-policy";
    /// Puts it into force.
    pub const NODE_RESTRICTION_BINDING: &str = "kubevirt-node-restriction-binding";
}

/// Roles of users.
pub mod user_roles {
    /// Adds to the cluster's `admin`.
    pub const ADMIN: &str = "kubevirt.io:admin";
    /// Adds to the cluster's `edit`.
    pub const EDIT: &str = "kubevirt.io:edit";
    /// Adds to the cluster's `view`.
    pub const VIEW: &str = "kubevirt.io:view";
    /// May migrate.
    pub const MIGRATE: &str = "kubevirt.io:migrate";
    /// What everyone may do.
    pub const DEFAULT: &str = "kubevirt.io:default";
    /// Everyone sees the instance types and preferences of the cluster.
    pub const INSTANCETYPE_VIEW: &str = "instancetype.kubevirt.io:view";
}
