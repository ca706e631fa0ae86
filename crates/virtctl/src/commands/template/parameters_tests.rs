use serde_json::json;

use super::*;
use crate::names::NoRandomness;

fn first(letters: &[u8]) -> Result<char, NoRandomness> {
    letters.first().map(|byte| char::from(*byte)).ok_or(NoRandomness)
}

fn run(template: Value, given: &[(&str, &str)]) -> Result<Processed, String> {
    let template = serde_json::from_value(template).unwrap();
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    process(template, &given, &mut first).map_err(|error| error.to_string())
}

fn machine() -> Value {
    json!({
        "metadata": { "name": "${NAME}", "namespace": "fixed" },
        "spec": { "runStrategy": "Always", "template": { "spec": {
            "domain": { "cpu": { "cores": "${{CPUS}}" }, "devices": {}, "memory": { "guest": "${MEMORY}" } },
        } } },
    })
}

fn template(change: impl FnOnce(&mut Value)) -> Value {
    let mut template = json!({
        "virtualMachine": machine(),
        "message": "Enjoy ${NAME}!",
        "parameters": [
            { "name": "NAME", "generate": "expression", "from": "vm-[a-z]{3}" },
            { "name": "CPUS", "value": "2" },
            { "name": "MEMORY", "required": true },
        ],
    });
    change(&mut template);
    template
}

#[test]
fn a_template_makes_a_machine() {
    let made = run(template(|_| ()), &[("MEMORY", "1Gi")]).unwrap();
    assert_eq!(made.message.as_deref(), Some("Enjoy vm-aaa!"));
    assert_eq!(made.warnings, Vec::<String>::new());
    let mut expected = machine();
    expected["apiVersion"] = "kubevirt.io/v1".into();
    expected["kind"] = "VirtualMachine".into();
    expected["metadata"] = json!({ "name": "vm-aaa" });
    expected["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] = 2.into();
    expected["spec"]["template"]["spec"]["domain"]["memory"]["guest"] = "1Gi".into();
    assert_eq!(made.machine, expected);
    let given = run(template(|_| ()), &[("MEMORY", "1Gi"), ("NAME", "web")]).unwrap();
    assert_eq!(given.machine["metadata"]["name"], "web");
}

#[test]
fn a_namespace_stays_if_it_is_open() {
    let open = template(|template| template["virtualMachine"]["metadata"]["namespace"] = "ns-${NAME}".into());
    let made = run(open, &[("MEMORY", "1Gi"), ("NAME", "x")]).unwrap();
    assert_eq!(made.machine["metadata"]["namespace"], "ns-x");
}

#[test]
fn what_is_not_used_is_told() {
    let more = template(|template| {
        template["parameters"].as_array_mut().unwrap().push(json!({ "name": "MORE" }));
    });
    let made = run(more, &[("MEMORY", "1Gi")]).unwrap();
    assert_eq!(made.warnings, ["spec.parameters[3].name: MORE is defined but never referenced"]);
}

#[test]
fn mistakes_are_named_by_their_field() {
    let wrong = |change: fn(&mut Value)| run(template(change), &[("MEMORY", "1Gi")]).unwrap_err();
    for (error, expected) in [
        (
            run(template(|_| ()), &[("OTHER", "x")]).unwrap_err(),
            "error merging template parameters: parameter OTHER not found in template",
        ),
        (
            run(template(|_| ()), &[]).unwrap_err(),
            "spec.parameters[2].value: parameter 'MEMORY' is required and a value must be specified",
        ),
        (
            wrong(|template| template["message"] = "${WHO}".into()),
            "error validating template parameters: spec.virtualMachine: references undefined parameter WHO",
        ),
        (
            wrong(|template| template["virtualMachine"] = json!({})),
            "spec.virtualMachine: virtualMachine is required and cannot be empty",
        ),
        (
            wrong(|template| template["parameters"][0]["generate"] = "dice".into()),
            "spec.parameters[0].generate: unknown generator name 'dice' for parameter 'NAME'",
        ),
        (
            wrong(|template| template["parameters"][0]["from"] = "".into()),
            "spec.parameters[0].from: from cannot be empty for parameter 'NAME'",
        ),
        (
            wrong(|template| template["parameters"][0]["from"] = "[z-a]{3}".into()),
            "spec.parameters[0].from: invalid range specified: z-a",
        ),
        (
            wrong(|template| template["parameters"].as_array_mut().unwrap().push(json!({ "name": "NAME" }))),
            "spec.parameters[3].name: there is another parameter 'NAME'",
        ),
        (
            wrong(|template| template["parameters"].as_array_mut().unwrap().push(json!({ "name": "" }))),
            "spec.parameters[3].name: parameter name is empty",
        ),
        (
            wrong(|template| template["parameters"][1]["value"] = "null".into()),
            "spec.virtualMachine: the value of parameter 'CPUS' is null",
        ),
        (
            wrong(|template| template["virtualMachine"]["spec"]["template"]["spec"]["domian"] = json!({})),
            "spec.virtualMachine: failed to convert into a VirtualMachine: unknown field \
             \"spec.template.spec.domian\"",
        ),
    ] {
        assert_eq!(error, expected);
    }
    let text = wrong(|template| template["parameters"][1]["value"] = "many".into());
    assert!(text.starts_with("spec.virtualMachine: failed to convert into a VirtualMachine: "), "{text}");
}
