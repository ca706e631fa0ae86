//! How often each instance was written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::describe::Metric;
use super::page::Page;
use crate::key::NamespacedName;

pub(super) const SYNCS: Metric =
    Metric::counter("kubevirt_vmi_sync_total", "How often the component brought an instance up to date")
        .by(&["namespace", "name"]);

/// How often each instance was written; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Syncs(Arc<Mutex<HashMap<NamespacedName, u64>>>);

impl Syncs {
    /// An instance was written.
    pub fn written(&self, instance: &NamespacedName) {
        let mut counts = self.lock();
        match counts.get_mut(instance) {
            Some(count) => *count += 1,
            None => drop(counts.insert(instance.clone(), 1)),
        }
    }

    /// An instance is gone.
    pub fn forget(&self, instance: &NamespacedName) {
        let mut counts = self.lock();
        counts.remove(instance);
        if counts.capacity() > 4 * counts.len() {
            counts.shrink_to_fit();
        }
    }

    pub(super) fn tell(&self, page: &mut Page) {
        for (instance, count) in self.lock().iter() {
            #[expect(clippy::cast_precision_loss, reason = "Prometheus knows no other numbers")]
            page.add(&SYNCS, &[&instance.namespace, &instance.name], *count as f64);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<NamespacedName, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_as_long_as_there_is_an_instance() {
        let syncs = Syncs::default();
        let (one, two) = (NamespacedName::new("a", "one"), NamespacedName::new("a", "two"));
        syncs.written(&one);
        syncs.written(&one);
        syncs.written(&two);
        syncs.forget(&two);
        let mut page = Page::default();
        syncs.tell(&mut page);
        let mut text = String::new();
        page.write_to(&mut text);
        assert!(
            text.ends_with("counter\nkubevirt_vmi_sync_total{namespace=\"a\",name=\"one\"} 2\n"),
            "{text}"
        );
    }
}
