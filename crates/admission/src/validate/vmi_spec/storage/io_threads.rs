//! The threads that serve the disks of an instance.

use kubevirt_api::vmi::disks::IoThreadsPolicy;
use kubevirt_api::vmi::domain::DomainSpec;

use crate::{Path, Problems};

/// What is wrong with the policy for IO threads; `path` is that of the instance's specification.
pub(super) fn check(path: &Path<'_>, domain: &DomainSpec, problems: &mut Problems) {
    let Some(policy) = &domain.io_threads_policy else { return };
    if !policy.is_known() {
        let known = IoThreadsPolicy::KNOWN.join(", ");
        problems
            .invalid(&path.at("domain.ioThreadsPolicy"), format!("{:?} is none of {known}", policy.as_str()));
    }
    let count = domain.io_threads.as_ref().and_then(|threads| threads.supplemental_pool_thread_count);
    if *policy == IoThreadsPolicy::SupplementalPool && count.unwrap_or_default() < 1 {
        let message = "the policy supplementalPool needs ioThreads.supplementalPoolThreadCount of 1 or more";
        problems.invalid(&path.at("domain.ioThreads.count"), message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{assert_fields, read};

    #[test]
    fn a_pool_has_threads() {
        let cases = [
            ("no policy", json!({}), &[][..]),
            ("shared", json!({"ioThreadsPolicy": "shared"}), &[]),
            ("auto", json!({"ioThreadsPolicy": "auto"}), &[]),
            ("unknown", json!({"ioThreadsPolicy": "many"}), &["spec.domain.ioThreadsPolicy"]),
            ("empty", json!({"ioThreadsPolicy": ""}), &["spec.domain.ioThreadsPolicy"]),
            (
                "a pool",
                json!({"ioThreadsPolicy": "supplementalPool", "ioThreads": {"supplementalPoolThreadCount": 1}}),
                &[],
            ),
            (
                "a pool without threads",
                json!({"ioThreadsPolicy": "supplementalPool"}),
                &["spec.domain.ioThreads.count"],
            ),
            (
                "a pool without a count",
                json!({"ioThreadsPolicy": "supplementalPool", "ioThreads": {}}),
                &["spec.domain.ioThreads.count"],
            ),
            (
                "a pool of none",
                json!({"ioThreadsPolicy": "supplementalPool", "ioThreads": {"supplementalPoolThreadCount": 0}}),
                &["spec.domain.ioThreads.count"],
            ),
            (
                "a pool of less than none",
                json!({"ioThreadsPolicy": "supplementalPool", "ioThreads": {"supplementalPoolThreadCount": -4}}),
                &["spec.domain.ioThreads.count"],
            ),
        ];
        for (case, domain, expected) in cases {
            let spec: kubevirt_api::vmi::VirtualMachineInstanceSpec = read(crate::testing::patched(
                &json!({"domain": {"devices": {}}}),
                &json!({"domain": domain}),
            ));
            let mut problems = Problems::default();
            check(&Path::new("spec"), &spec.domain, &mut problems);
            assert_fields(case, &problems, expected);
        }
    }
}
