//! Looks at everything that may matter to why a machine does not run.

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Event as CoreEvent, Node, PersistentVolumeClaim, Pod, Secret};
use kube::Api;
use kube::api::{ListParams, LogParams};
use kubevirt_api::data_volume::{DataVolume, DataVolumePhase};
use kubevirt_api::names::{conditions, labels};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_api::vmi::volumes::Volume;
use serde_json::Value;

use super::evidence::{Event, Evidence, Storage};
use crate::connect::Session;

/// The container of the launcher.
const COMPUTE: &str = "compute";
const LOG_LINES: i64 = 200;

/// What can be seen with the user's rights. Only the machine itself must be.
pub async fn gather(session: &Session, program: &str, namespace: &str, name: &str) -> Result<Evidence> {
    let mut seen = Evidence {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        program: program.to_owned(),
        now: Timestamp::now(),
        vm: session.api::<VirtualMachine>(Some(namespace)).get_opt(name).await?,
        vmi: session.api::<VirtualMachineInstance>(Some(namespace)).get_opt(name).await?,
        ..Evidence::default()
    };
    pod(session, &mut seen).await;
    if let Some(node) = seen.node_name().map(str::to_owned) {
        let found = Api::<Node>::all(session.client.clone()).get_opt(&node).await;
        seen.node = note(&mut seen.unseen, "the node", found).flatten();
    }
    volumes(session, &mut seen).await;
    events(session, &mut seen).await;
    log(session, &mut seen).await;
    Ok(seen)
}

/// What was asked for, or a note that it could not be seen.
fn note<T>(unseen: &mut Vec<String>, what: &str, result: Result<T, kube::Error>) -> Option<T> {
    match result {
        Ok(found) => Some(found),
        Err(kube::Error::Api(status)) if status.is_not_found() => None,
        Err(kube::Error::Api(status)) => {
            unseen.push(format!("{what}: {}", status.message));
            None
        }
        Err(error) => {
            unseen.push(format!("{what}: {error}"));
            None
        }
    }
}

async fn pod(session: &Session, seen: &mut Evidence) {
    let Some(uid) = seen.vmi.as_ref().and_then(|vmi| vmi.metadata.uid.clone()) else { return };
    let chosen = ListParams::default().labels(&format!("{}={uid}", labels::CREATED_BY));
    let found = session.api::<Pod>(Some(&seen.namespace)).list(&chosen).await;
    let Some(found) = note(&mut seen.unseen, "its pod", found) else { return };
    seen.pod = found.items.into_iter().max_by_key(|pod| pod.metadata.creation_timestamp.clone());
}

async fn volumes(session: &Session, seen: &mut Evidence) {
    let of_vm = seen.vm.as_ref().and_then(|vm| vm.spec.template.spec.as_ref());
    let spec = seen.vmi.as_ref().map(|vmi| &vmi.spec).or(of_vm);
    let volumes = spec.and_then(|spec| spec.volumes.clone()).unwrap_or_default();
    for volume in &volumes {
        if let Some(claim) = claim_of(volume) {
            let found = session.api::<PersistentVolumeClaim>(Some(&seen.namespace)).get_opt(claim).await;
            if let Some(found) = note(&mut seen.unseen, "claims", found) {
                seen.claims.insert(claim.to_owned(), claim_state(found.as_ref()));
            }
        }
        if let Some(data_volume) = &volume.data_volume {
            data_volume_of(session, seen, &data_volume.name).await;
        }
        let (secrets, maps) = objects_of(volume);
        for secret in secrets {
            let found = session.api::<Secret>(Some(&seen.namespace)).get_metadata_opt(&secret).await;
            if let Some(None) = note(&mut seen.unseen, "secrets", found) {
                seen.missing.push(format!("the secret {secret}"));
            }
        }
        for map in maps {
            let found = session.api::<ConfigMap>(Some(&seen.namespace)).get_metadata_opt(&map).await;
            if let Some(None) = note(&mut seen.unseen, "config maps", found) {
                seen.missing.push(format!("the config map {map}"));
            }
        }
    }
    seen.unseen.dedup();
}

/// A claim that bears the name of a data volume is as good as one.
async fn data_volume_of(session: &Session, seen: &mut Evidence, name: &str) {
    let found = session.api::<DataVolume>(Some(&seen.namespace)).get_opt(name).await;
    let found = note(&mut seen.unseen, "data volumes", found).flatten();
    let mut state = data_volume_state(found.as_ref());
    if state == Storage::Missing {
        let claim = session.api::<PersistentVolumeClaim>(Some(&seen.namespace)).get_opt(name).await;
        state = claim_state(note(&mut seen.unseen, "claims", claim).flatten().as_ref());
    }
    let templates = seen.vm.as_ref().and_then(|vm| vm.spec.data_volume_templates.as_ref());
    let made = templates.into_iter().flatten().any(|template| {
        template.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()) == Some(name)
    });
    if state == Storage::Missing && made {
        state = Storage::Waiting("not there yet".to_owned(), String::new());
    }
    seen.data_volumes.insert(name.to_owned(), state);
}

fn claim_of(volume: &Volume) -> Option<&str> {
    let direct = volume.persistent_volume_claim.as_ref().map(|source| source.claim_name.as_str());
    let layered = || Some(volume.ephemeral.as_ref()?.persistent_volume_claim.as_ref()?.claim_name.as_str());
    direct.or_else(layered)
}

fn claim_state(claim: Option<&PersistentVolumeClaim>) -> Storage {
    let Some(claim) = claim else { return Storage::Missing };
    match claim.status.as_ref().and_then(|status| status.phase.as_deref()) {
        Some("Bound") => Storage::Ready,
        other => Storage::Waiting(other.unwrap_or("Pending").to_owned(), String::new()),
    }
}

fn data_volume_state(volume: Option<&DataVolume>) -> Storage {
    let Some(volume) = volume else { return Storage::Missing };
    let status = volume.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref());
    let running = kubevirt_api::condition::find(conditions, conditions::data_volume::RUNNING);
    let message = running.and_then(|running| running.message.clone()).unwrap_or_default();
    match status.and_then(|status| status.phase.as_ref()) {
        Some(
            DataVolumePhase::Succeeded
            | DataVolumePhase::WaitForFirstConsumer
            | DataVolumePhase::PendingPopulation,
        ) => Storage::Ready,
        Some(DataVolumePhase::Failed) => Storage::Failed(message),
        phase => {
            let progress =
                status.and_then(|status| status.progress.clone()).filter(|progress| progress != "N/A");
            let phase = phase.map_or("Pending", DataVolumePhase::as_str);
            let phase = progress.map_or_else(|| phase.to_owned(), |progress| format!("{phase} ({progress})"));
            Storage::Waiting(phase, message)
        }
    }
}

/// The secrets and config maps that a volume is made from; those that may be missing are left out.
fn objects_of(volume: &Volume) -> (Vec<String>, Vec<String>) {
    let value = serde_json::to_value(volume).unwrap_or_default();
    let name = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let optional =
        |kind: &str| value.pointer(&format!("/{kind}/optional")).and_then(Value::as_bool) == Some(true);
    let secrets = [
        "/cloudInitNoCloud/secretRef/name",
        "/cloudInitNoCloud/networkDataSecretRef/name",
        "/cloudInitConfigDrive/secretRef/name",
        "/cloudInitConfigDrive/networkDataSecretRef/name",
        "/sysprep/secret/name",
        "/containerDisk/imagePullSecret",
    ];
    let mut secrets: Vec<String> = secrets.into_iter().filter_map(name).collect();
    secrets.extend(name("/secret/secretName").filter(|_| !optional("secret")));
    let mut maps: Vec<String> = name("/sysprep/configMap/name").into_iter().collect();
    maps.extend(name("/configMap/name").filter(|_| !optional("configMap")));
    (secrets, maps)
}

async fn events(session: &Session, seen: &mut Evidence) {
    let api = session.api::<CoreEvent>(Some(&seen.namespace));
    let waiting = seen.claims.iter().filter(|(_, state)| matches!(state, Storage::Waiting(..)));
    let mut about: Vec<String> = waiting.map(|(name, _)| name.clone()).collect();
    about.extend([seen.name.clone(), seen.pod_name().to_owned()]);
    let mut found = Vec::new();
    for name in about.into_iter().filter(|name| !name.is_empty()) {
        let chosen = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let Some(list) = note(&mut seen.unseen, "events", api.list(&chosen).await) else { break };
        found.extend(list.items);
    }
    let mut found: Vec<(Option<Timestamp>, CoreEvent)> =
        found.into_iter().map(|event| (when(&event), event)).collect();
    found.sort_by_key(|(when, _)| *when);
    for (_, event) in found {
        let about = event.involved_object.kind.unwrap_or_default();
        let message = event.message.unwrap_or_default();
        if about == "PersistentVolumeClaim"
            && let Some(Storage::Waiting(_, said)) =
                seen.claims.get_mut(&event.involved_object.name.unwrap_or_default())
        {
            said.clone_from(&message);
        }
        seen.events.push(Event {
            about,
            warning: event.type_.as_deref() == Some("Warning"),
            reason: event.reason.unwrap_or_default(),
            message,
        });
    }
}

fn when(event: &CoreEvent) -> Option<Timestamp> {
    let series =
        event.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0);
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    series.or(last).or_else(|| event.event_time.as_ref().map(|time| time.0))
}

/// What a launcher logged is asked for only where something is wrong.
async fn log(session: &Session, seen: &mut Evidence) {
    if seen.pod.is_none() || matches!(seen.phase(), Some(VmiPhase::Running | VmiPhase::Succeeded)) {
        return;
    }
    let asked = LogParams {
        container: Some(COMPUTE.to_owned()),
        tail_lines: Some(LOG_LINES),
        ..LogParams::default()
    };
    let pod = seen.pod_name().to_owned();
    // A container that has not begun has no log, which is no news.
    if let Ok(text) = session.api::<Pod>(Some(&seen.namespace)).logs(&pod, &asked).await {
        seen.log = telling(&text);
    }
}

/// The lines of a log that tell of something wrong, in words. Lines that are not JSON come from QEMU and tell always.
pub fn telling(text: &str) -> Vec<String> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<String> {
    let Ok(Value::Object(said)) = serde_json::from_str::<Value>(line) else {
        return Some(line.trim().to_owned()).filter(|line| !line.is_empty());
    };
    let field = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
    if !matches!(field("level"), "error" | "fatal" | "panic" | "critical" | "warning" | "warn") {
        return None;
    }
    let (message, cause) = (field("msg"), field("reason"));
    let cause = if cause.is_empty() { field("error") } else { cause };
    Some(if cause.is_empty() || message.contains(cause) {
        message.to_owned()
    } else {
        format!("{message}: {cause}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_tell_something_are_kept() {
        let log = concat!(
            r#"{"level":"info","msg":"all is well"}"#,
            "\n",
            "qemu-system-x86_64: could not open disk\n\n",
            r#"{"level":"error","msg":"the guest did not start","error":"no memory"}"#,
            "\n",
            r#"{"level":"warning","msg":"odd","reason":"odd"}"#,
            "\n",
        );
        assert_eq!(
            telling(log),
            ["qemu-system-x86_64: could not open disk", "the guest did not start: no memory", "odd"]
        );
    }

    #[test]
    fn volumes_name_what_they_are_made_from() {
        let of = |text: &str| {
            let volume: Volume = serde_json::from_str(text).unwrap();
            let (secrets, maps) = objects_of(&volume);
            (secrets.join(","), maps.join(","), claim_of(&volume).unwrap_or_default().to_owned())
        };
        let is =
            |secrets: &str, maps: &str, claim: &str| (secrets.to_owned(), maps.to_owned(), claim.to_owned());
        assert_eq!(of(r#"{"name":"a","cloudInitNoCloud":{"secretRef":{"name":"s"}}}"#), is("s", "", ""));
        assert_eq!(of(r#"{"name":"a","secret":{"secretName":"s"}}"#), is("s", "", ""));
        assert_eq!(of(r#"{"name":"a","secret":{"secretName":"s","optional":true}}"#), is("", "", ""));
        assert_eq!(of(r#"{"name":"a","configMap":{"name":"m"}}"#), is("", "m", ""));
        assert_eq!(of(r#"{"name":"a","persistentVolumeClaim":{"claimName":"c"}}"#), is("", "", "c"));
        assert_eq!(
            of(r#"{"name":"a","ephemeral":{"persistentVolumeClaim":{"claimName":"c"}}}"#),
            is("", "", "c")
        );
        assert_eq!(
            of(r#"{"name":"a","containerDisk":{"image":"i","imagePullSecret":"s"}}"#),
            is("s", "", "")
        );
    }
}
