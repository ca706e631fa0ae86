//! Phase 1 of a machine's network: which interfaces it has, and when each is wired up and taken down.
//!
//! How a network was found is written down before anything is changed, since the bridge binding takes the pod's
//! interface apart.

mod requests;

use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::network::{Interface, InterfaceState};
use kubevirt_network::{InterfaceRequest, NetworkError, Wiring, phase1};

use crate::isolation::Place;
use crate::prepare::{Ledger, PrepareError, failed, hopeless};

/// Wires up all networks of a machine that is about to start.
pub(crate) async fn start(
    vmi: &VirtualMachineInstance,
    place: &Place,
    config: &ClusterConfig,
    ledger: &mut Ledger,
) -> Result<Vec<Wiring>, PrepareError> {
    let wanted = |interface: &Interface| interface.state != Some(InterfaceState::Absent);
    let requests = requests::of(vmi, config, wanted).map_err(hopeless)?;
    wire(&requests, place, ledger).await
}

/// Wires up networks that came to a running machine and takes down those that left it. What did not work is returned
/// too.
pub(crate) async fn change(
    vmi: &VirtualMachineInstance,
    place: &Place,
    config: &ClusterConfig,
    ledger: &mut Ledger,
) -> Result<(Vec<Wiring>, Vec<String>), PrepareError> {
    let mut problems = Vec::new();
    for wiring in unwanted(vmi, &ledger.record().wirings) {
        match phase1::remove(place.network(), &wiring).await {
            Ok(_) => {
                ledger.change(|record| record.wirings.retain(|known| known.network != wiring.network))?;
            }
            Err(error) => problems.push(format!("network {:?}: {error}", wiring.network)),
        }
    }
    let known = ledger.record().wirings.clone();
    let is_known = |name: &str| known.iter().any(|wiring| wiring.network == name);
    let comes = |interface: &Interface| is_new(vmi, interface) && !is_known(&interface.name);
    let all = |interface: &Interface| is_known(&interface.name) || comes(interface);
    let requests = requests::of(vmi, config, all).map_err(failed)?;
    if requests.iter().any(|request| !is_known(&request.network))
        && let Err(error) = wire(&requests, place, ledger).await
    {
        problems.push(error.to_string());
    }
    Ok((ledger.record().wirings.clone(), problems))
}

async fn wire(
    requests: &[InterfaceRequest],
    place: &Place,
    ledger: &mut Ledger,
) -> Result<Vec<Wiring>, PrepareError> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let found =
        phase1::discover(place.network(), requests, &ledger.record().wirings).await.map_err(problem)?;
    ledger.change(|record| record.wirings.clone_from(&found))?;
    let steps = phase1::apply(place.network(), requests, &found).await.map_err(problem)?;
    for step in steps {
        tracing::debug!(pod = place.pod_uid(), %step, "network");
    }
    Ok(found)
}

/// An interface that the pod gets later is waited for; what is refused for good is not tried again.
fn problem(error: NetworkError) -> PrepareError {
    match error {
        NetworkError::MissingInterface { .. } => PrepareError::NotYet(error.to_string()),
        error if error.is_final() => hopeless(error),
        error => failed(error),
    }
}

/// The wirings of networks that the machine should not have any more, and that its guest does not have.
fn unwanted(vmi: &VirtualMachineInstance, wirings: &[Wiring]) -> Vec<Wiring> {
    let interfaces = || vmi.spec.domain.devices.interfaces.iter().flatten();
    let wanted = |name: &str| {
        interfaces()
            .any(|interface| interface.name == name && interface.state != Some(InterfaceState::Absent))
    };
    let gone = |wiring: &&Wiring| !wanted(&wiring.network) && !comes_from(vmi, &wiring.network, "domain");
    wirings.iter().filter(gone).cloned().collect()
}

/// Whether the pod has the interface and the guest does not.
fn is_new(vmi: &VirtualMachineInstance, interface: &Interface) -> bool {
    interface.state != Some(InterfaceState::Absent)
        && comes_from(vmi, &interface.name, "multus-status")
        && !comes_from(vmi, &interface.name, "domain")
}

/// Whether the status of an interface is known from this source.
fn comes_from(vmi: &VirtualMachineInstance, name: &str, source: &str) -> bool {
    let statuses = vmi.status.as_ref().and_then(|status| status.interfaces.as_ref());
    let mut statuses = statuses.into_iter().flatten().filter(|status| status.name.as_deref() == Some(name));
    let sources = |text: &str| text.split(',').any(|word| word.trim() == source);
    statuses.any(|status| status.info_source.as_deref().is_some_and(sources))
}
