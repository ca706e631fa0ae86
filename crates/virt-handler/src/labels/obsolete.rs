//! CPU models that are too old to be offered.

use kubevirt_admission::ClusterConfig;

/// Whether a model is too old if nobody says otherwise.
pub fn by_default(model: &str) -> bool {
    const MODELS: [&str; 17] = [
        "486",
        "Conroe",
        "Opteron_G1",
        "Opteron_G2",
        "athlon",
        "core2duo",
        "coreduo",
        "kvm32",
        "kvm64",
        "n270",
        "pentium",
        "pentium2",
        "pentium3",
        "pentiumpro",
        "phenom",
        "qemu32",
        "qemu64",
    ];
    MODELS.contains(&model.strip_suffix("-v1").unwrap_or(model))
}

/// Whether a model is too old for this cluster.
pub fn here(config: &ClusterConfig, model: &str) -> bool {
    match &config.configuration().obsolete_cpu_models {
        Some(models) => models.contains_key(model),
        None => by_default(model),
    }
}
