//! `kubevirt render` as users call it.
//!
//! Each manifest in `render/` becomes what lies beside it; `UPDATE_GOLDEN=1 cargo test -p kubevirt --test binary render`
//! writes it anew.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use clap::Parser;
use kubevirt_virt_launcher::Arguments;
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/binary/render")
}

/// Where machines are emulated.
const EMULATED: [&str; 2] = ["--config", "emulation.config"];

fn render(file: &str, more: &[&str]) -> Output {
    Command::new(crate::BINARY)
        .current_dir(folder())
        .args(["render", "-f", file])
        .args(more)
        .output()
        .unwrap()
}

fn shown(output: &Output) -> String {
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

#[test]
fn every_machine_becomes_what_it_was() {
    let update = env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for (name, config) in [("seed", &EMULATED[..]), ("instance-type", &EMULATED), ("windows", &[])] {
        for output in ["pod", "domain", "qemu"] {
            let text = shown(&render(&format!("{name}.yaml"), &[config, &["-o", output]].concat()));
            let path = folder().join(format!("{name}.{output}"));
            if update {
                fs::write(&path, &text).unwrap();
            } else if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
                wrong.push(format!("{name}.{output}:\n{text}"));
            }
        }
    }
    let wrong = wrong.join("\n");
    assert!(wrong.is_empty(), "differ from what is stored (UPDATE_GOLDEN=1 accepts them):\n{wrong}");
}

#[test]
fn the_launcher_takes_the_command_of_its_pod() {
    for (file, more) in [("seed.yaml", &EMULATED[..]), ("windows.yaml", &["--image-volumes"])] {
        let pods = documents(&shown(&render(file, more)));
        let command: Vec<String> =
            serde_json::from_value(pods[0]["spec"]["containers"][0]["command"].clone()).unwrap();
        let taken = Arguments::try_parse_from(&command).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(taken.image_volume, more.contains(&"--image-volumes"));
        assert_eq!(taken.allow_emulation, more == EMULATED);
        assert!(!taken.uid.is_empty());
    }
}

#[test]
fn a_seed_is_a_machine_with_one_container_where_images_are_volumes() {
    let count = |more: &[&str]| {
        let pods = documents(&shown(&render("seed.yaml", more)));
        let spec = &pods[0]["spec"];
        let count = |list: &str| spec[list].as_array().map_or(0, Vec::len);
        (count("containers"), count("initContainers"))
    };
    assert_eq!(count(&[]), (2, 2));
    assert_eq!(count(&["--image-volumes"]), (1, 1));
}

#[test]
fn what_admission_refuses_is_told() {
    let output = render("refused.yaml", &[]);
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("spec.template.spec.domain.devices.disks[0].Name 'nowhere' not found"), "{words}");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_cannot_run_here_is_told() {
    for (output, field) in
        [("pod", "hooks.kubevirt.io/hookSidecars"), ("qemu", "spec.domain.features.hyperv")]
    {
        let made = render("unsupported.yaml", &[&EMULATED[..], &["-o", output]].concat());
        let words = String::from_utf8(made.stderr).unwrap();
        assert_eq!(made.status.code(), Some(1), "{words}");
        assert!(words.contains(field), "{words}");
    }
}

#[test]
fn a_file_without_machines_is_a_mistake() {
    let output = render("emulation.config", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("no VirtualMachine"));
}
