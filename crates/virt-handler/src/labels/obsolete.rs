//! CPU models that are too old to be offered.

use kubevirt_admission::ClusterConfig;
use kubevirt_domain::host_model::is_obsolete;

/// Whether a model is too old for this cluster.
pub fn here(config: &ClusterConfig, model: &str) -> bool {
    match &config.configuration().obsolete_cpu_models {
        Some(models) => models.contains_key(model),
        None => is_obsolete(model),
    }
}
