//! What admission reads of the cluster: from stores where it is asked often, from the API server where it is not.
//!
//! The rules of admission are pure and ask for objects as they go. They are run on what is known; what they asked for
//! in vain is fetched, and they are run again until nothing is missing. So nobody has to know beforehand what a rule
//! reads, and most reviews are answered at the first run.

mod asking;
mod question;

use futures_util::future::try_join_all;
use kube::Client;
use kubevirt_admission::Objects;
use kubevirt_api::instancetype::{VirtualMachineClusterInstancetype, VirtualMachineInstancetype};
use kubevirt_api::preference::{VirtualMachineClusterPreference, VirtualMachinePreference};
use kubevirt_api::preset::VirtualMachineInstancePreset;
use kubevirt_component::{Store, Watch};
use tokio_util::sync::CancellationToken;

use asking::{Asking, Found};
pub(crate) use question::is_name;

/// How often rules may ask for more: the longest way is from a VM's volume over a DataVolume and a DataSource to a
/// claim, and from its labels to a preference.
const ROUNDS: usize = 10;

/// What admission reads of the cluster.
pub struct Cluster {
    client: Client,
    presets: Store<VirtualMachineInstancePreset>,
    instancetypes: Store<VirtualMachineInstancetype>,
    cluster_instancetypes: Store<VirtualMachineClusterInstancetype>,
    preferences: Store<VirtualMachinePreference>,
    cluster_preferences: Store<VirtualMachineClusterPreference>,
}

/// An object that a rule needs could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CannotRead {
    /// The API server did not give it.
    #[error("cannot read {what}: {source}")]
    Api {
        /// Which one.
        what: String,
        /// Why.
        source: kube::Error,
    },
    /// The rules asked on and on.
    #[error("one object refers to another over and over")]
    TooMany,
}

impl Cluster {
    /// Begins to watch what is asked often with the first client; what is not is fetched with the second.
    pub fn start(watches: &Client, client: Client, stop: &CancellationToken) -> Self {
        let presets = Watch::all(watches.clone()).index(asking::NAMESPACE, asking::namespace_of);
        Self {
            client,
            presets: presets.start(stop),
            instancetypes: Watch::all(watches.clone()).start(stop),
            cluster_instancetypes: Watch::all(watches.clone()).start(stop),
            preferences: Watch::all(watches.clone()).start(stop),
            cluster_preferences: Watch::all(watches.clone()).start(stop),
        }
    }

    /// Waits until the stores are filled.
    pub async fn ready(&self) {
        self.presets.ready().await;
        self.instancetypes.ready().await;
        self.cluster_instancetypes.ready().await;
        self.preferences.ready().await;
        self.cluster_preferences.ready().await;
    }

    /// Runs rules until they have all objects that they ask for.
    pub async fn judge<T>(&self, rules: impl Fn(&dyn Objects) -> T) -> Result<T, CannotRead> {
        let mut found = Found::default();
        for _ in 0..ROUNDS {
            let missing = {
                let asking = Asking::new(self, &found);
                let verdict = rules(&asking);
                let missing = asking.missing();
                if missing.is_empty() {
                    return Ok(verdict);
                }
                missing
            };
            let fetched = missing.into_iter().map(|(question, fetch)| async move {
                match fetch(self.client.clone(), question.clone()).await {
                    Ok(answer) => Ok((question, answer)),
                    Err(source) => Err(CannotRead::Api { what: question.to_string(), source }),
                }
            });
            found.extend(try_join_all(fetched).await?);
        }
        Err(CannotRead::TooMany)
    }
}
