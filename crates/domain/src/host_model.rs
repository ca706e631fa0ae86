//! The named CPU model that is nearest to the host's own CPU: what `host-model` stands for.
//!
//! `-cpu host` would serve a guest that stays. One that moves takes its CPU along, so that what it has must be said in
//! words that mean the same on every host: a named model, and the flags in which this host differs from it.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::facts::HostCpu;

/// A CPU: the host's own, or one that QEMU has a name for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Name of the model.
    pub name: String,
    /// Its maker, as the CPU says it.
    pub vendor: Option<String>,
    /// Family and model number.
    pub signature: Option<(i64, i64)>,
    /// Its features.
    pub features: BTreeSet<String>,
}

/// Finds the nearest named model, what the host has beyond it, and what it has beyond the host.
///
/// Near is, in this order: not obsolete, of the same maker, of the same family and model number, little to take away,
/// little to add. Of equals, a name without a version comes first.
pub fn nearest(host: &Cpu, named: &[Cpu]) -> Option<HostCpu> {
    let distance = |cpu: &&Cpu| {
        let missing = cpu.features.difference(&host.features).count();
        let further = host.features.difference(&cpu.features).count();
        (
            is_obsolete(&cpu.name),
            cpu.vendor != host.vendor,
            cpu.signature.is_none() || cpu.signature != host.signature,
            missing,
            further,
            is_versioned(&cpu.name),
            // The later generation has the greater name more often than not.
            Reverse(cpu.name.clone()),
        )
    };
    let model = named.iter().filter(|cpu| is_real(&cpu.name)).min_by_key(distance)?;
    Some(HostCpu {
        model: Some(model.name.clone()),
        require: host.features.difference(&model.features).cloned().collect(),
        disable: model.features.difference(&host.features).cloned().collect(),
        features: host.features.clone(),
    })
}

/// Whether a name ends in a version, such as `EPYC-Milan-v2`.
fn is_versioned(name: &str) -> bool {
    let version = name.rsplit_once("-v").map_or("", |(_, version)| version);
    !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a model is too old to be offered if nobody says otherwise.
pub fn is_obsolete(model: &str) -> bool {
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

/// Whether there is such a CPU outside of QEMU, so that it can be what a host is.
pub fn is_real(name: &str) -> bool {
    let invented = ["max", "host", "base", "qemu32", "qemu64", "kvm32", "kvm64"];
    let plain =
        if is_versioned(name) { name.rsplit_once("-v").map_or(name, |(plain, _)| plain) } else { name };
    !invented.contains(&plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(name: &str, vendor: &str, signature: (i64, i64), features: &[&str]) -> Cpu {
        Cpu {
            name: name.into(),
            vendor: Some(vendor.into()),
            signature: Some(signature),
            features: features.iter().map(|&feature| feature.to_owned()).collect(),
        }
    }

    fn named() -> Vec<Cpu> {
        vec![
            cpu("max", "Intel", (6, 94), &["a", "b", "c", "d"]),
            cpu("qemu64-v1", "Intel", (6, 94), &["a", "b", "c"]),
            cpu("Conroe", "Intel", (6, 15), &["a"]),
            cpu("Nehalem", "Intel", (6, 26), &["a", "b"]),
            cpu("Skylake", "Intel", (6, 94), &["a", "b", "c", "tsx"]),
            cpu("Skylake-v3", "Intel", (6, 94), &["a", "b", "c"]),
            cpu("Skylake-noTSX", "Intel", (6, 94), &["a", "b", "c"]),
            cpu("EPYC", "AMD", (23, 1), &["a", "b", "c", "d"]),
        ]
    }

    #[test]
    fn prefers_what_is_most_like_the_host() {
        let cases = [
            // The same CPU without a feature that was turned off, by its plain name.
            (cpu("host", "Intel", (6, 94), &["a", "b", "c", "d"]), "Skylake-noTSX", vec!["d"], vec![]),
            // All of it.
            (cpu("host", "Intel", (6, 94), &["a", "b", "c", "tsx"]), "Skylake", vec![], vec![]),
            // A CPU that QEMU has no name for: what lacks nothing and has most.
            (cpu("host", "Intel", (6, 200), &["a", "b", "x"]), "Nehalem", vec!["x"], vec![]),
            // Another maker's CPU is never nearer, even if something must be taken away.
            (cpu("host", "AMD", (25, 1), &["a", "b", "c"]), "EPYC", vec![], vec!["d"]),
            // Nor is one that is too old.
            (cpu("host", "Intel", (6, 15), &["a"]), "Nehalem", vec![], vec!["b"]),
        ];
        for (host, model, require, disable) in cases {
            let found = nearest(&host, &named()).unwrap();
            assert_eq!(found.model.as_deref(), Some(model), "{host:?}");
            assert_eq!(found.require, require, "{host:?}");
            assert_eq!(found.disable, disable, "{host:?}");
            assert_eq!(found.features, host.features);
        }
        assert_eq!(nearest(&Cpu::default(), &[]), None);
    }

    #[test]
    fn the_named_model_with_the_changes_is_the_host() {
        use proptest::prelude::*;
        let features = || proptest::collection::btree_set("[a-f]", 0..6);
        let strategy = (features(), proptest::collection::vec(("[A-Z]{3}(-v[12])?", features()), 1..6));
        proptest!(|((host, models) in strategy)| {
            let host = Cpu { features: host, ..Cpu::default() };
            let models: Vec<_> = models.into_iter()
                .map(|(name, features)| Cpu { name, features, ..Cpu::default() }).collect();
            let found = nearest(&host, &models).unwrap();
            let made = |model: &Cpu| {
                let kept = model.features.iter().filter(|feature| !found.disable.contains(feature));
                kept.chain(&found.require).cloned().collect::<BTreeSet<String>>()
            };
            let same_name = |cpu: &&Cpu| Some(&cpu.name) == found.model.as_ref();
            prop_assert!(models.iter().filter(same_name).any(|model| made(model) == host.features));
        });
    }

    #[test]
    fn tells_versions_and_inventions() {
        for (name, versioned, real) in [
            ("EPYC-Milan-v2", true, true),
            ("EPYC-Milan", false, true),
            ("Skylake-Client-noTSX-IBRS", false, true),
            ("x-v", false, true),
            ("qemu64-v1", true, false),
            ("host", false, false),
        ] {
            assert_eq!((is_versioned(name), is_real(name)), (versioned, real), "{name}");
        }
    }
}
