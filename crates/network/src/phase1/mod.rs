//! Phase 1: wires up a pod's network for its VM. Needs privileges, and works in the pod's network namespace.
//!
//! It looks at what is there ([`discover`]), decides what is missing, and does only that ([`apply`]). So a second
//! run changes nothing, and a run that was cut short is completed by the next one. The bridge binding takes the
//! pod's interface apart, so write down what [`discover`] returns before you [`apply`] it, and give it to the
//! next [`discover`]. Keep it where the guest's side cannot write.
//!
//! SR-IOV devices and the interfaces of binding plugins need nothing from here. Whether a guest sees its cable
//! plugged in is a setting of its QEMU.

mod apply;
mod decide;
mod discovery;
mod observe;
mod step;

use observe::observe;
pub use step::Step;

use crate::{BindingKind, InterfaceRequest, NetNs, NetworkError, Wiring};

/// Finds out how each of the networks is to be wired up. Changes nothing.
///
/// `known` is what earlier runs found in this pod.
pub async fn discover(
    namespace: &NetNs,
    requests: &[InterfaceRequest],
    known: &[Wiring],
) -> Result<Vec<Wiring>, NetworkError> {
    let (requests, known) = (requests.to_vec(), known.to_vec());
    inside(namespace, move || discovery::discover(&observe(false)?, &requests, &known)).await
}

/// Makes what `wirings` say, as far as it is not there. The steps that it took are returned, for a log.
///
/// `wirings` are what [`discover`] found for the same requests.
pub async fn apply(
    namespace: &NetNs,
    requests: &[InterfaceRequest],
    wirings: &[Wiring],
) -> Result<Vec<Step>, NetworkError> {
    let pairs: Vec<_> = requests
        .iter()
        .filter_map(|request| {
            Some((request.clone(), wirings.iter().find(|w| w.network == request.network)?.clone()))
        })
        .collect();
    inside(namespace, move || {
        let masquerades = pairs.iter().any(|(_, wiring)| wiring.binding == BindingKind::Masquerade);
        apply::apply(decide::decide(&observe(masquerades)?, &pairs))
    })
    .await
}

/// [`discover`] and [`apply`] in one, for those who need not survive being cut short.
pub async fn configure(
    namespace: &NetNs,
    requests: &[InterfaceRequest],
    known: &[Wiring],
) -> Result<Vec<Wiring>, NetworkError> {
    let wirings = discover(namespace, requests, known).await?;
    apply(namespace, requests, &wirings).await?;
    Ok(wirings)
}

/// Takes down what was made for a network that the VM no longer has. The pod's own interface stays.
pub async fn remove(namespace: &NetNs, wiring: &Wiring) -> Result<Vec<Step>, NetworkError> {
    let wiring = wiring.clone();
    inside(namespace, move || {
        let observed = observe(wiring.binding == BindingKind::Masquerade)?;
        apply::apply(decide::removal(&observed, &wiring))
    })
    .await
}

async fn inside<T: Send + 'static>(
    namespace: &NetNs,
    work: impl FnOnce() -> Result<T, NetworkError> + Send + 'static,
) -> Result<T, NetworkError> {
    namespace.run(work).await.map_err(NetworkError::Namespace)?
}
