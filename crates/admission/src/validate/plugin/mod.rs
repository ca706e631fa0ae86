//! Rules for `Plugin`.

mod cel;

use kubevirt_api::plugin::{Plugin, PluginSpec};

use crate::{Context, Gate, Path, Problems};

/// Everything that is wrong with a plugin.
pub fn check(cx: &Context<'_>, new: &Plugin, old: Option<&Plugin>) -> Problems {
    let mut problems = Problems::default();
    if old.is_none() && !cx.config.enabled(Gate::Plugins) {
        problems.forbidden(&Path::WHOLE, format!("plugins need the feature gate {}", Gate::Plugins.name()));
    }
    check_expressions(&new.spec, &mut problems);
    check_sockets(&new.spec, &mut problems);
    problems
}

fn check_expressions(spec: &PluginSpec, problems: &mut Problems) {
    let path = Path::new("spec");
    let mut condition = |field: &Path<'_>, names: cel::Names, text: Option<&str>| {
        if let Some(problem) =
            text.filter(|text| !text.is_empty()).and_then(|text| cel::condition_problem(text, names))
        {
            problems.invalid(field, format!("is no usable condition: {problem}"));
        }
    };
    condition(&path.at("condition"), cel::Names::OfDomainHooks, spec.condition.as_deref());
    let (domain_hooks, node_hooks) = (path.at("domainHooks"), path.at("nodeHooks"));
    for (index, hook) in spec.domain_hooks.iter().flatten().enumerate() {
        let hook_path = domain_hooks.index(index);
        condition(&hook_path.at("condition"), cel::Names::OfDomainHooks, hook.condition.as_deref());
    }
    for (index, hook) in spec.node_hooks.iter().flatten().enumerate() {
        let hook_path = node_hooks.index(index);
        condition(&hook_path.at("condition"), cel::Names::OfNodeHooks, hook.condition.as_deref());
    }
    for (index, hook) in spec.domain_hooks.iter().flatten().enumerate() {
        let text = hook.cel.as_ref().map(|cel| cel.expression.as_str()).filter(|text| !text.is_empty());
        if let Some(problem) = text.and_then(cel::mutation_problem) {
            let hook_path = domain_hooks.index(index);
            problems.invalid(
                &hook_path.at("cel.expression"),
                format!("is no usable change of a domain: {problem}"),
            );
        }
    }
}

fn check_sockets(spec: &PluginSpec, problems: &mut Problems) {
    let hooks = Path::new("spec.domainHooks");
    for (index, hook) in spec.domain_hooks.iter().flatten().enumerate() {
        let Some(sidecar) = &hook.sidecar else { continue };
        if !is_clean(&sidecar.socket_path) {
            problems.invalid(
                &hooks.index(index).at("sidecar.socketPath"),
                format!(
                    "{:?} must be a plain path, without `..`, `.` or doubled slashes",
                    sidecar.socket_path
                ),
            );
        }
    }
}

/// Whether a path has no step that could be left away; `..` only where a relative path starts with it.
fn is_clean(path: &str) -> bool {
    if matches!(path, "." | "/") {
        return true;
    }
    let steps = path.strip_prefix('/').unwrap_or(path);
    let relative = steps.len() == path.len();
    let mut below = !relative;
    steps.split('/').all(|step| {
        let plain = !matches!(step, "" | "." | "..");
        below |= plain;
        plain || (step == ".." && !below)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, read};

    fn found(world: &World, spec: Value) -> Problems {
        let plugin = read(json!({ "metadata": { "name": "p" }, "spec": spec }));
        world.run(|cx| check(cx, &plugin, None))
    }

    #[test]
    fn new_plugins_need_the_gate() {
        let plugin: Plugin = read(json!({ "metadata": { "name": "p" }, "spec": {} }));
        assert_fields("off", &World::default().run(|cx| check(cx, &plugin, None)), &[""]);
        assert_fields("update", &World::default().run(|cx| check(cx, &plugin, Some(&plugin))), &[]);
        let on = World::default().with_gates(&["Plugins"]);
        assert_fields("on", &on.run(|cx| check(cx, &plugin, None)), &[]);
    }

    #[test]
    fn expressions_stand_where_they_are_wrong() {
        let hook =
            |more: Value| json!({ "domainHooks": [{ "cel": { "expression": "Domain{Title: 'a'}" } }, more] });
        let node = |condition: &str| json!({ "nodeHooks": [{ "socket": "/s", "permittedHooks": ["PreVMStart"], "condition": condition }] });
        let cases = [
            ("nothing", json!({}), &[][..]),
            ("condition", json!({ "condition": "vmi.Name == 'a'" }), &[]),
            ("empty condition", json!({ "condition": "" }), &[]),
            ("no syntax", json!({ "condition": "not!!! valid" }), &["spec.condition"]),
            ("no bool", json!({ "condition": "vmi.Name" }), &["spec.condition"]),
            ("change", hook(json!({ "cel": { "expression": "Domain{Name: vmi.Name}" } })), &[]),
            (
                "no change",
                hook(json!({ "cel": { "expression": "true" } })),
                &["spec.domainHooks[1].cel.expression"],
            ),
            (
                "unknown type",
                hook(json!({ "cel": { "expression": "Domane{}" } })),
                &["spec.domainHooks[1].cel.expression"],
            ),
            ("of a hook", hook(json!({ "condition": "1 +" })), &["spec.domainHooks[1].condition"]),
            ("of a node", node("vmi.spec.domain.cpu.cores > 0"), &[]),
            ("of a node, wrong", node("vmi.metadata.name"), &["spec.nodeHooks[0].condition"]),
            ("of a node, no domain there", node("domainSpec.Name == 'a'"), &["spec.nodeHooks[0].condition"]),
            (
                "two",
                hook(json!({ "cel": { "expression": "1" }, "condition": "2" })),
                &["spec.domainHooks[1].cel.expression", "spec.domainHooks[1].condition"],
            ),
        ];
        let world = World::default().with_gates(&["Plugins"]);
        for (case, spec, expected) in cases {
            assert_fields(case, &found(&world, spec), expected);
        }
    }

    #[test]
    fn sockets_have_plain_paths() {
        let world = World::default().with_gates(&["Plugins"]);
        let check =
            |path: &str| found(&world, json!({ "domainHooks": [{ "sidecar": { "socketPath": path } }] }));
        for path in ["/run/a.sock", "run/a.sock", "/", ".", "../a", "../../a", "/a..b", "/.a"] {
            assert_fields(path, &check(path), &[]);
        }
        for path in ["", "/a/../b", "/a/./b", "/a//b", "/a/", "a/..", "./a", "/..", "/.", "//a", "../a/.."] {
            assert_fields(path, &check(path), &["spec.domainHooks[0].sidecar.socketPath"]);
        }
    }
}
