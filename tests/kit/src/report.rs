//! What a failed test saw, in words: objects, events and logs.

use std::fmt::Write;

use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};
use kube::api::{ListParams, LogParams};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

const LOG_LINES: i64 = 20;
const EVENTS: usize = 40;

/// All about one object: the object itself, its events and, of a pod, what its containers said.
pub async fn of_object(
    client: Client,
    name: &str,
    namespace: Option<&str>,
    seen: &kube::Result<Option<Value>>,
) -> String {
    let mut text = String::new();
    let mut kind = None;
    match seen {
        Err(error) => section(&mut text, "The object", &format!("The API server says: {error}")),
        Ok(None) => section(&mut text, "The object", "There is none."),
        Ok(Some(object)) => {
            kind = object["kind"].as_str();
            section(&mut text, "The object", &yaml(object));
        }
    }
    let parameters = ListParams::default().fields(&format!("involvedObject.name={name}"));
    let of_kind = |event: &Event| kind.is_none_or(|kind| event.involved_object.kind.as_deref() == Some(kind));
    section(&mut text, "Its events", &events(client.clone(), namespace, &parameters, of_kind).await);
    if let (Some("Pod"), Ok(Some(object)), Some(namespace)) = (kind, seen, namespace)
        && let Ok(pod) = serde_json::from_value(object.clone())
    {
        text += &logs(client, namespace, &pod).await;
    }
    text
}

/// All about a namespace: its pods, what their containers said, and its events.
pub async fn of_namespace(client: Client, namespace: &str) -> String {
    let mut text = String::new();
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    match pods.list(&ListParams::default()).await {
        Err(error) => section(&mut text, "Pods", &format!("The API server says: {error}")),
        Ok(pods) if pods.items.is_empty() => section(&mut text, "Pods", "There are none."),
        Ok(pods) => {
            for pod in &pods {
                section(&mut text, &format!("Pod {}", pod.name_any()), &summary(pod));
                text += &logs(client.clone(), namespace, pod).await;
            }
        }
    }
    let all = events(client, Some(namespace), &ListParams::default(), |_| true).await;
    section(&mut text, "Events", &all);
    text
}

fn section(text: &mut String, title: &str, body: &str) {
    let body = if body.is_empty() { "There are none." } else { body };
    let _ = writeln!(text, "--- {title}\n{}", body.trim_end());
}

/// The object as YAML, without what nobody reads.
fn yaml(object: &Value) -> String {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    serde_saphyr::to_string(&object).unwrap_or_else(|_| object.to_string())
}

/// The events in a namespace, or in all, one a line and the latest last.
async fn events(
    client: Client,
    namespace: Option<&str>,
    parameters: &ListParams,
    which: impl Fn(&Event) -> bool,
) -> String {
    let api: Api<Event> = match namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    match api.list(parameters).await {
        Err(error) => format!("The API server says: {error}"),
        Ok(list) => {
            let mut events: Vec<Event> = list.items.into_iter().filter(which).collect();
            events.sort_by_key(time);
            let skipped = events.len().saturating_sub(EVENTS);
            events[skipped..].iter().map(event_line).collect()
        }
    }
}

/// When the event was last seen, as text that sorts.
fn time(event: &Event) -> String {
    let value = serde_json::to_value(event).unwrap_or_default();
    let text = [&value["lastTimestamp"], &value["eventTime"], &value["metadata"]["creationTimestamp"]]
        .into_iter()
        .find_map(Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn event_line(event: &Event) -> String {
    let object = &event.involved_object;
    let word = |text: &Option<String>| text.clone().unwrap_or_default();
    let times =
        event.count.filter(|count| *count > 1).map_or(String::new(), |count| format!(" ({count} times)"));
    format!(
        "{} {} {} {}/{}: {}{times}\n",
        time(event),
        word(&event.type_),
        word(&event.reason),
        word(&object.kind),
        word(&object.name),
        word(&event.message).trim_end(),
    )
}

/// Where a pod is and how its containers are.
fn summary(pod: &Pod) -> String {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or("no node");
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("no phase");
    let mut text = format!("{phase}, on {node}\n");
    for container in statuses(pod) {
        let state = serde_json::to_value(&container.state).unwrap_or_default();
        let _ = writeln!(
            text,
            "container {}: {}, {} restarts, {state}",
            container.name,
            if container.ready { "ready" } else { "not ready" },
            container.restart_count
        );
    }
    text
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let first = status.and_then(|status| status.init_container_statuses.as_ref());
    let then = status.and_then(|status| status.container_statuses.as_ref());
    first.into_iter().chain(then).flatten()
}

/// The last lines of each of a pod's containers, and of the runs before the last restart.
async fn logs(client: Client, namespace: &str, pod: &Pod) -> String {
    let (api, name): (Api<Pod>, String) = (Api::namespaced(client, namespace), pod.name_any());
    let mut text = String::new();
    for container in statuses(pod) {
        for previous in [true, false] {
            if previous && container.restart_count == 0 {
                continue;
            }
            let parameters = LogParams {
                container: Some(container.name.clone()),
                tail_lines: Some(LOG_LINES),
                previous,
                ..LogParams::default()
            };
            let log = api.logs(&name, &parameters).await.unwrap_or_else(|error| format!("No log: {error}"));
            let which = if previous { ", before its restart" } else { "" };
            section(&mut text, &format!("Log of {name}, container {}{which}", container.name), &log);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shows_objects_without_bookkeeping() {
        let object = json!({"kind": "Pod", "metadata": {
            "name": "one",
            "managedFields": [{"manager": "x"}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"},
        }});
        let text = yaml(&object);
        assert!(text.contains("name: one") && text.contains("a: b"), "{text}");
        assert!(!text.contains("managedFields") && !text.contains("last-applied"), "{text}");
    }

    #[test]
    fn shows_events_on_one_line() {
        let event: Event = serde_json::from_value(json!({
            "metadata": {"name": "x", "creationTimestamp": "2026-01-02T03:04:05Z"},
            "involvedObject": {"kind": "Pod", "name": "one"},
            "type": "Warning", "reason": "FailedScheduling", "message": "no nodes\n", "count": 3,
        }))
        .unwrap();
        assert_eq!(
            event_line(&event),
            "2026-01-02T03:04:05Z Warning FailedScheduling Pod/one: no nodes (3 times)\n"
        );
    }

    #[test]
    fn says_where_a_pod_is() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "one"},
            "spec": {"nodeName": "node01", "containers": []},
            "status": {"phase": "Pending", "containerStatuses": [{
                "name": "c", "ready": false, "restartCount": 2, "image": "", "imageID": "",
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            }]},
        }))
        .unwrap();
        assert_eq!(
            summary(&pod),
            "Pending, on node01\ncontainer c: not ready, 2 restarts, {\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}\n"
        );
        assert!(summary(&Pod::default()).starts_with("no phase, on no node"));
    }
}
