//! What is known of machines, instances, migrations and snapshots, as Prometheus asks for it.
//!
//! Almost all of it is read from the stores when somebody asks, and nothing is kept in between. Only how long phases
//! took is counted as they change ([`Transitions`]).

mod instance_types;
mod interfaces;
mod labels;
mod list;
mod machine;
mod migrations;
mod resources;
mod snapshots;
#[cfg(test)]
mod tests;
mod transitions;
mod vmi;

use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_admission::instancetype::{Role, Scope};
use kubevirt_component::Metrics;
use kubevirt_component::metrics::{Page, Syncs};

use crate::context::{Context, Stores};
pub use labels::CONFIG_MAP as LABELS_CONFIG_MAP;
pub use transitions::Transitions;

/// What is counted as it happens; clones share it.
#[derive(Clone, Default)]
pub struct Counts {
    /// How long phases took.
    pub transitions: Transitions,
    /// How often each instance was written.
    pub syncs: Syncs,
}

/// What the program tells Prometheus; clones share it.
#[derive(Clone)]
pub struct Told {
    /// What is counted as it happens.
    pub counts: Counts,
    known: Arc<Mutex<Option<Context>>>,
}

impl Told {
    /// Adds everything to what Prometheus is told.
    pub fn new(metrics: &Metrics) -> Self {
        let counts = Counts { transitions: Transitions::new(metrics), syncs: metrics.syncs() };
        let known: Arc<Mutex<Option<Context>>> = Arc::default();
        metrics.ask(list::STORED, {
            let known = known.clone();
            move |page| {
                let context = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(context) = context {
                    tell(&context, page);
                }
            }
        });
        Self { counts, known }
    }

    /// From now on, tells of what this context knows.
    pub fn lead(&self, context: &Context) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.clone());
    }

    /// Tells of nothing any more, and lets go of what was known.
    pub fn follow(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// All that can be told from stores.
fn tell(context: &Context, page: &mut Page) {
    let stores = &context.stores;
    let config = context.config();
    let labels = labels::Shown::from_maps(&stores.label_settings.all());
    for vm in stores.vms.all() {
        machine::tell(page, stores, &labels, &vm);
    }
    let cluster = vmi::Cluster { config: &config, launcher_image: &context.settings.launcher_image };
    let mut outdated = 0;
    for vmi in stores.vmis.all() {
        let known = vmi::Known::look_up(stores, &vmi);
        vmi::tell(page, &cluster, &vmi, &known);
        outdated += u32::from(cluster.is_outdated(&vmi));
    }
    page.add(&list::VMI_OUTDATED, &[], outdated.into());
    migrations::tell(page, &stores.migrations.all());
    for snapshot in stores.snapshots.all() {
        snapshots::tell(page, &snapshot);
    }
    let emulation = config.configuration().developer_configuration.as_ref().and_then(|it| it.use_emulation);
    page.add(&list::EMULATION, &[], f64::from(u8::from(emulation == Some(true))));
}

fn vendors(stores: &Stores) -> impl Fn(Role, Scope, &str, &str) -> Option<String> {
    |role, scope, namespace, name| stores.types.vendor(role, scope, namespace, name)
}

/// The second since 1970.
#[expect(clippy::cast_precision_loss, reason = "Prometheus knows no other numbers")]
fn seconds(time: &Time) -> f64 {
    time.0.as_second() as f64
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows no other numbers")]
fn number(value: i64) -> f64 {
    value as f64
}
