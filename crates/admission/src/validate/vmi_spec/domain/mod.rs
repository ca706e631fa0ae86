//! The virtual hardware, where it may run and how it lives: all rules but those of storage and networks.

mod access_credentials;
pub mod architecture;
mod claims;
mod cpu;
mod dedicated_cpu;
mod devices;
pub mod discontinued;
mod dns;
pub mod firmware;
mod gated_volumes;
pub mod grace;
mod host_devices;
pub mod hyperv;
mod identity;
mod launch_security;
mod lifecycle;
mod machine;
pub mod memory;
pub(crate) mod placement;
mod probes;
mod resources;

use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use crate::{Context, Path, Problems};

/// Everything that is wrong.
pub fn check(cx: &Context<'_>, path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    identity::check(path, spec, problems);
    resources::check(path, spec, problems);
    memory::check(cx, path, spec, problems);
    machine::check(cx, path, spec, problems);
    firmware::check(path, spec, problems);
    cpu::check(path, spec, problems);
    hyperv::check_numbers(path, spec, problems);
    dedicated_cpu::check(cx, path, spec, problems);
    lifecycle::check(cx, path, spec, problems);
    placement::check(path, spec, problems);
    claims::check(cx, path, spec, problems);
    devices::check(cx, path, spec, problems);
    probes::check(path, spec, problems);
    gated_volumes::check(cx, path, spec, problems);
    access_credentials::check(path, spec, problems);
    dns::check(path, spec, problems);
    host_devices::check(cx, path, spec, problems);
    grace::check(cx, path, spec, problems);
    launch_security::check(cx, path, spec, problems);
}

/// The architecture of the instance: its own or the cluster's default.
fn architecture_of<'a>(cx: &'a Context<'_>, spec: &'a VirtualMachineInstanceSpec) -> &'a str {
    let own = spec.architecture.as_deref().filter(|own| !own.is_empty());
    own.unwrap_or_else(|| cx.config.default_architecture())
}

#[cfg(test)]
pub(crate) mod testing {
    //! Tables of cases on the specification of an instance.

    use kubevirt_api::vmi::VirtualMachineInstanceSpec;
    use serde_json::{Value, json};

    use crate::testing::{Case, World, assert_fields, patched, read};
    use crate::{Path, Problems, Reason};

    /// A specification that nothing is wrong with.
    pub fn base() -> Value {
        json!({
            "architecture": "amd64",
            "domain": {
                "devices": {},
                "memory": { "guest": "1Gi" },
                "resources": { "requests": { "memory": "1Gi" } },
            },
            "networks": [{ "name": "default", "pod": {} }],
        })
    }

    /// What the rules of this folder say to a patched specification.
    pub fn problems(world: &World, patch: &Value) -> Problems {
        let spec: VirtualMachineInstanceSpec = read(patched(&base(), patch));
        let mut problems = Problems::default();
        world.run(|cx| super::check(cx, &Path::new("spec"), &spec, &mut problems));
        problems
    }

    /// Runs a table of cases.
    pub fn run(world: &World, cases: &[Case<'_>]) {
        for (name, patch, expected) in cases {
            assert_fields(name, &problems(world, patch), expected);
        }
    }

    /// Runs a table of cases on the `domain` part.
    pub fn run_domain(world: &World, cases: &[Case<'_>]) {
        for (name, patch, expected) in cases {
            assert_fields(name, &problems(world, &json!({ "domain": patch })), expected);
        }
    }

    /// Runs a table of cases on the `domain.devices` part.
    pub fn run_devices(world: &World, cases: &[Case<'_>]) {
        for (name, patch, expected) in cases {
            assert_fields(name, &problems(world, &json!({ "domain": { "devices": patch } })), expected);
        }
    }

    /// The reasons of the problems with a patched specification.
    pub fn reasons(world: &World, patch: &Value) -> Vec<Reason> {
        problems(world, patch).iter().map(|problem| problem.reason).collect()
    }

    #[test]
    fn nothing_is_wrong_with_the_base() {
        run(&World::default(), &[("base", json!({}), &[])]);
    }
}
