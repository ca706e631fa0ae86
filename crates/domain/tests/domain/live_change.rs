//! A real QEMU goes along with every change: what the steps say, it does.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::thread;
use std::time::{Duration, Instant};

use kubevirt_domain::change::Step;
use kubevirt_domain::domain::Architecture;
use kubevirt_domain::facts::VolumeFacts;
use kubevirt_domain::{Domain, QemuFacts, changes, for_migration_target, qemu};
use serde_json::{Value, json};

use crate::draft::Draft;
use crate::real_qemu::{Folder, installed};

/// A QEMU that one talks with.
struct Dialogue {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    events: Vec<Value>,
}

impl Dialogue {
    fn start(folder: &Folder, domain: &Domain) -> Self {
        Self::greet(folder.spawn(domain))
    }

    fn greet(mut child: Child) -> Self {
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut dialogue = Self { child, input, output, events: Vec::new() };
        dialogue.ask("qmp_capabilities", json!({})).unwrap();
        dialogue
    }

    fn end(mut self) {
        // QEMU may be gone before it has said that it goes, or even read the whole line.
        let _ = writeln!(self.input, "{}", json!({ "execute": "quit" }));
        assert!(self.child.wait().unwrap().success());
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        if self.output.read_line(&mut line).unwrap() == 0 {
            self.mourn();
        }
        serde_json::from_str(&line).unwrap()
    }

    /// Fails with QEMU's last words.
    fn mourn(&mut self) -> ! {
        let mut words = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
        panic!("QEMU is gone, {:?}: {words}", self.child.wait());
    }

    fn ask(&mut self, execute: &str, arguments: Value) -> Result<Value, String> {
        if writeln!(self.input, "{}", json!({ "execute": execute, "arguments": arguments })).is_err() {
            self.mourn();
        }
        loop {
            let answer = self.read();
            if let Some(value) = answer.get("return") {
                return Ok(value.clone());
            } else if let Some(error) = answer.get("error") {
                return Err(format!("{execute} {arguments}: {error}"));
            }
            self.events.push(answer);
        }
    }

    fn perform(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Run(command) | Step::Clean(command) => {
                let mut arguments = command.arguments;
                if command.execute == "netdev_add" {
                    // A tap device needs rights that a test has not.
                    arguments = json!({ "type": "hubport", "hubid": 1, "id": arguments["id"] });
                }
                self.ask(command.execute, arguments)?;
            }
            Step::Unplug { device } => {
                self.events.clear();
                self.ask("device_del", json!({ "id": device }))?;
                let is_out =
                    |event: &Value| event["event"] == "DEVICE_DELETED" && event["data"]["device"] == device;
                while !self.events.iter().any(is_out) {
                    let event = self.read();
                    self.events.push(event);
                }
            }
            Step::PlugCpus { count } => {
                let slots = self.ask("query-hotpluggable-cpus", json!({}))?;
                let slots = slots.as_array().unwrap();
                let mut has = slots.iter().filter(|slot| slot.get("qom-path").is_some()).count();
                for slot in slots.iter().rev().filter(|slot| slot.get("qom-path").is_none()) {
                    if has < count as usize {
                        let mut cpu = slot["props"].clone();
                        cpu["driver"] = slot["type"].clone();
                        cpu["id"] = json!(qemu::names::cpu(has as u32));
                        self.ask("device_add", cpu)?;
                        has += 1;
                    }
                }
            }
            Step::PassFile { .. } => {}
        }
        Ok(())
    }
}

#[test]
fn qemu_goes_along() {
    if installed(Architecture::Amd64.qemu_program()).is_none() {
        eprintln!("LEFT OUT: QEMU is not installed, so no running machine was changed");
        return;
    }
    let folder = Folder::new("change");
    let layout = folder.layout();
    let mut start = Draft::new();
    start.drive("cd");
    start.host.volumes.insert("root".into(), VolumeFacts { size: Some(1 << 20), ..VolumeFacts::default() });
    let mut more = start.clone();
    more.volume("one", "scsi");
    more.volume("two", "virtio");
    more.medium("cd");
    more.card("second");
    more.grow(3, "512Mi");
    more.host.volumes.get_mut("root").unwrap().room = Some(2 << 20);
    let (start, more) = (start.domain_in(&layout), more.domain_in(&layout));
    folder.fill(&start);
    folder.fill(&more);

    let mut machine = Dialogue::start(&folder, &start);
    let mut running = start.clone();
    for wanted in [&more, &start, &more] {
        let found = changes(&running, wanted);
        assert!(!found.list.is_empty());
        for change in found.list {
            for step in change.steps(&running) {
                machine.perform(step).unwrap();
            }
            change.apply(&mut running);
        }
    }
    assert_eq!(machine.ask("query-cpus-fast", json!({})).unwrap().as_array().unwrap().len(), 3);
    let blocks = machine.ask("query-block", json!({})).unwrap();
    let cd = blocks.as_array().unwrap().iter().find(|block| block["qdev"] == "disk-cd").unwrap();
    assert_eq!(cd["inserted"]["node-name"], "v-cd");
    let nodes = machine.ask("query-named-block-nodes", json!({ "flat": true })).unwrap();
    let root = nodes.as_array().unwrap().iter().find(|node| node["node-name"] == "v-root").unwrap();
    assert_eq!(root["image"]["virtual-size"], 2 << 20);

    // What is left half-way can be undone and done again.
    let nothing = Draft::new().domain_in(&layout);
    let attach = changes(&nothing, &more).list.into_iter().find(|change| !change.undo(&nothing).is_empty());
    let attach = attach.unwrap();
    let steps = attach.steps(&nothing);
    assert!(machine.perform(steps[0].clone()).is_err(), "it is in already");
    for command in attach.undo(&nothing) {
        assert!(machine.ask(command.execute, command.arguments).is_err(), "what is in use stays");
    }
    migrate(&mut machine, &running, &more, &folder);
    machine.end();
}

/// A machine made from the running domain takes over the state of each device in its place.
fn migrate(source: &mut Dialogue, running: &Domain, own: &Domain, folder: &Folder) {
    let target = for_migration_target(running, own, &QemuFacts::default()).unwrap();
    let sockets = folder.path("there");
    std::fs::create_dir_all(&sockets).unwrap();
    let arguments = qemu::incoming_arguments(&target);
    let arguments = arguments.iter().map(|argument| argument.replace("/virt-", "/there-")).collect();
    let mut target = Dialogue::greet(folder.spawn_with(&target, arguments));
    let uri = json!({ "uri": format!("unix:{sockets}/migration") });
    target.ask("migrate-incoming", uri.clone()).unwrap();
    source.ask("migrate", uri).unwrap();
    let started = Instant::now();
    loop {
        let status = source.ask("query-migrate", json!({})).unwrap();
        match status["status"].as_str() {
            Some("completed") => break,
            Some("failed" | "cancelled") => panic!("{status}"),
            _ => assert!(started.elapsed() < Duration::from_secs(120), "{status}"),
        }
        thread::sleep(Duration::from_millis(50));
    }
    while target.ask("query-status", json!({})).unwrap()["status"] == "inmigrate" {
        assert!(started.elapsed() < Duration::from_secs(120));
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(target.ask("query-cpus-fast", json!({})).unwrap().as_array().unwrap().len(), 3);
    target.end();
}
