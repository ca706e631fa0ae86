//! Carries out steps in the network namespace of the calling thread.

use std::{fs, io, path::Path};

use super::step::{Change, Step};
use crate::{
    NetworkError,
    links::Links,
    nat::{clear, replace},
    tap,
};

/// Carries out all steps, or those before the first that fails.
pub fn apply(changes: Vec<Change>) -> Result<Vec<Step>, NetworkError> {
    let mut links = Links::open().map_err(|source| NetworkError::Observe { what: "links", source })?;
    let steps: Vec<Step> = changes.into_iter().map(Step).collect();
    for step in &steps {
        carry_out(&mut links, &step.0)
            .map_err(|source| NetworkError::Change { step: step.to_string(), source })?;
    }
    Ok(steps)
}

fn carry_out(links: &mut Links, change: &Change) -> io::Result<()> {
    match change {
        Change::AddBridge { name, mac } => links.create(name, "bridge", *mac),
        Change::AddTap { name, multi_queue, owner } => tap::create(name, *multi_queue, *owner),
        // Not every kernel has dummies, and a bridge without ports does as well.
        Change::AddStandIn { name, mac } => match links.create(name, "dummy", *mac) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => links.create(name, "bridge", *mac),
            result => result,
        },
        Change::Rename { link, to } => links.rename(link, to),
        Change::SetMac { link, mac } => links.set_mac(link, *mac),
        Change::SetMtu { link, mtu } => links.set_mtu(link, *mtu),
        Change::Attach { link, bridge } => links.attach(link, bridge),
        Change::StopLearning { link } => links.stop_learning(link),
        Change::AddAddress { link, address } => links.add_address(link, *address),
        Change::RemoveAddress { link, address } => gone_is_fine(links.remove_address(link, *address)),
        Change::Up { link } => links.set_up(link, true),
        Change::Down { link } => links.set_up(link, false),
        Change::Set { key, value } => fs::write(Path::new("/proc/sys").join(key), value),
        Change::SetRules { family, rules } => replace(*family, rules),
        Change::ClearRules { family } => clear(*family),
        Change::Remove { link } => links.remove(link),
    }
}

/// With an address others go that came with it.
fn gone_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => Ok(()),
        result => result,
    }
}
