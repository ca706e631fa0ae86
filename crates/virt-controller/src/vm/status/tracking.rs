//! Whether writes to a machine's disks are tracked for incremental backups.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};
use kubevirt_admission::Gate;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::ChangedBlockTrackingState as State;
use kubevirt_api::vmi::status::ChangedBlockTrackingStatus;

use crate::vm::observe::Observed;

/// Whether the cluster's selectors choose the machine, or its namespace.
pub fn is_selected(seen: &Observed) -> bool {
    let Some(selectors) = &seen.config.configuration().changed_block_tracking_label_selectors else {
        return false;
    };
    let own = seen.vm.metadata.labels.clone().unwrap_or_default();
    matches(selectors.virtual_machine_label_selector.as_ref(), &own)
        || matches(selectors.namespace_label_selector.as_ref(), &seen.namespace_labels)
}

fn matches(selector: Option<&LabelSelector>, labels: &BTreeMap<String, String>) -> bool {
    // A selector that cannot be read chooses nothing, rather than everything.
    let selector = selector.and_then(|selector| Selector::try_from(selector.clone()).ok());
    selector.is_some_and(|selector| selector.matches(labels))
}

/// The state after a look at the instance: tracking begins and ends with a start.
pub fn after(
    seen: &Observed,
    known: Option<ChangedBlockTrackingStatus>,
    vmi: Option<&VirtualMachineInstance>,
) -> Option<ChangedBlockTrackingStatus> {
    let of_instance =
        vmi.map(|vmi| state(vmi.status.as_ref().and_then(|status| status.changed_block_tracking.as_ref())));
    let enabled = seen.config.enabled(Gate::IncrementalBackup);
    let next = next(enabled, is_selected(seen), state(known.as_ref()), of_instance);
    match next {
        None => None,
        Some(State::Other(word)) if word.is_empty() && known.is_none() => None,
        Some(state) => Some(ChangedBlockTrackingStatus { state, ..known.unwrap_or_default() }),
    }
}

fn state(status: Option<&ChangedBlockTrackingStatus>) -> State {
    status.map(|status| status.state.clone()).unwrap_or_default()
}

fn is_off(state: &State) -> bool {
    state.is_empty() || *state == State::Disabled
}

/// The next state; none where nothing is left to say.
fn next(enabled: bool, selected: bool, known: State, instance: Option<State>) -> Option<State> {
    let instance_is_off = instance.as_ref().is_none_or(is_off);
    if !enabled {
        return match (selected, instance_is_off) {
            _ if known == State::IncrementalBackupFeatureGateDisabled => Some(known),
            (true, true) => Some(State::IncrementalBackupFeatureGateDisabled),
            (false, true) => None,
            (_, false) if matches!(known, State::Initializing | State::Enabled) => {
                Some(State::PendingRestart)
            }
            (_, false) => Some(known),
        };
    }
    if !selected {
        return Some(match known {
            known if is_off(&known) => known,
            _ if instance_is_off => State::Disabled,
            State::Other(_) => State::default(),
            _ => State::PendingRestart,
        });
    }
    Some(match (known, instance) {
        (State::Enabled, None) => State::Enabled,
        (State::Other(word), _) if !word.is_empty() => State::default(),
        (_, None) => State::Initializing,
        (State::PendingRestart | State::Disabled, Some(now @ (State::Initializing | State::Enabled))) => now,
        (State::Initializing | State::Enabled, Some(State::Enabled)) => State::Enabled,
        (State::Initializing | State::Enabled, Some(_)) => State::Initializing,
        _ => State::PendingRestart,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracking_begins_and_ends_with_a_start() {
        let off = State::default;
        let gate = || State::IncrementalBackupFeatureGateDisabled;
        let cases = [
            // enabled, selected, known, instance, next
            (true, true, off(), None, Some(State::Initializing)),
            (true, true, off(), Some(off()), Some(State::PendingRestart)),
            (true, true, State::PendingRestart, None, Some(State::Initializing)),
            (true, true, State::PendingRestart, Some(State::Initializing), Some(State::Initializing)),
            (true, true, State::Initializing, Some(State::Enabled), Some(State::Enabled)),
            (true, true, State::Enabled, Some(off()), Some(State::Initializing)),
            (true, true, State::Enabled, None, Some(State::Enabled)),
            (true, true, State::from("odd"), None, Some(off())),
            (true, false, off(), Some(off()), Some(off())),
            (true, false, State::Enabled, Some(State::Enabled), Some(State::PendingRestart)),
            (true, false, State::Enabled, None, Some(State::Disabled)),
            (true, false, State::PendingRestart, Some(State::Disabled), Some(State::Disabled)),
            (false, true, off(), None, Some(gate())),
            (false, false, off(), None, None),
            (false, false, gate(), None, Some(gate())),
            (false, true, State::Enabled, Some(State::Enabled), Some(State::PendingRestart)),
        ];
        for (enabled, selected, known, instance, expected) in cases {
            let case = format!("{enabled} {selected} {known} {instance:?}");
            assert_eq!(next(enabled, selected, known, instance), expected, "{case}");
        }
    }
}
