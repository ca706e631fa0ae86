//! What a cluster was started with, kept in its folder for later commands.

use std::fs;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::layout::Layout;

/// The ports of a cluster on this machine's loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    /// The API server, or what leads to it.
    pub api: u16,
    /// etcd, without nodes.
    pub etcd: u16,
    /// etcd for its peers, without nodes.
    pub etcd_peers: u16,
}

/// The contents of a cluster's `cluster.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// How many nodes it has; none is just a control plane.
    pub nodes: u8,
    /// Its ports on loopback.
    pub ports: Ports,
    /// Whether the start came to its end.
    pub complete: bool,
}

impl State {
    /// The state of the cluster, or nothing where there is none.
    pub fn read(layout: &Layout) -> Option<Self> {
        serde_json::from_slice(&fs::read(layout.state()).ok()?).ok()
    }

    /// Keeps the state; a reader sees the old one or the new one, never half of it.
    pub fn write(&self, layout: &Layout) -> Result<()> {
        let aside = layout.state().with_extension("new");
        fs::write(&aside, serde_json::to_vec_pretty(self)?)?;
        fs::rename(&aside, layout.state()).with_context(|| format!("write {}", layout.state().display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read_as_it_was_written() {
        let cache = std::env::temp_dir().join(format!("kubevirt-rs-state-{}", std::process::id()));
        let layout = Layout::new(&cache, "one").unwrap();
        fs::create_dir_all(layout.root()).unwrap();
        assert_eq!(State::read(&layout), None);
        let state = State { nodes: 2, ports: Ports { api: 1, etcd: 2, etcd_peers: 3 }, complete: false };
        state.write(&layout).unwrap();
        assert_eq!(State::read(&layout), Some(state));
        fs::write(layout.state(), "{").unwrap();
        assert_eq!(State::read(&layout), None);
        fs::remove_dir_all(cache).unwrap();
    }
}
