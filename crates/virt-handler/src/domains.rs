//! What the launchers of this node tell of their domains, and whose domains they are.
//!
//! Whatever may leave something behind on the node is written down first ([`records`]), so that a handler that comes
//! later finds it, even if nobody else remembers the instance.

mod records;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kubevirt_component::NamespacedName;
use kubevirt_launcher_rpc::DomainReport;

pub use records::Records;

/// Whose domain it is, as the API says and not as a launcher says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Name of the instance.
    pub key: NamespacedName,
    /// UID of the instance.
    pub uid: String,
    /// UID of the pod that the launcher runs in.
    pub pod: String,
}

/// A report that is not believed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Disbelief {
    /// The pod runs one instance and tells of another.
    #[error("this pod runs {ours}, not {theirs}")]
    AnotherInstance {
        /// The instance that the pod runs.
        ours: String,
        /// The instance that it tells of.
        theirs: String,
    },
    /// Nobody looks after this pod any more.
    #[error("nothing is known of instance {0} here")]
    Forgotten(String),
}

/// All domains of this node, by the UID of their instance.
#[derive(Debug)]
pub struct Domains {
    all: Mutex<BTreeMap<String, Known>>,
    records: Records,
}

#[derive(Clone, Debug)]
struct Known {
    owner: Owner,
    report: Option<Arc<DomainReport>>,
}

impl Domains {
    /// The domains that were written down in this folder.
    pub fn load(folder: &Path) -> io::Result<Self> {
        let records = Records::open(folder)?;
        let known = |record: records::Record| {
            let owner = record.owner();
            (owner.uid.clone(), Known { owner, report: record.end.map(Arc::new) })
        };
        let all = records.load()?.into_iter().map(known).collect();
        Ok(Self { all: Mutex::new(all), records })
    }

    /// Notes that there may be a domain of this owner on the node. True if that is news.
    pub fn note(&self, owner: &Owner) -> io::Result<bool> {
        let mut all = self.lock();
        if all.get(&owner.uid).is_some_and(|known| known.owner == *owner) {
            return Ok(false);
        }
        self.records.write(owner, None)?;
        all.insert(owner.uid.clone(), Known { owner: owner.clone(), report: None });
        Ok(true)
    }

    /// Takes in what a launcher tells. True if it is different from what was known.
    ///
    /// An end is written down before it is acknowledged, since the launcher leaves after that.
    pub fn tell(&self, owner: &Owner, report: DomainReport) -> Result<bool, TellError> {
        let theirs = &report.metadata.uid;
        if !theirs.is_empty() && *theirs != owner.uid {
            let (ours, theirs) = (owner.uid.clone(), theirs.clone());
            return Err(Disbelief::AnotherInstance { ours, theirs }.into());
        }
        let mut all = self.lock();
        let known = all.get_mut(&owner.uid).filter(|known| known.owner == *owner);
        let known = known.ok_or_else(|| Disbelief::Forgotten(owner.uid.clone()))?;
        if known.report.as_deref().is_some_and(|old| has_ended(old) || *old == report) {
            return Ok(false);
        }
        if has_ended(&report) {
            self.records.write(owner, Some(&report))?;
        }
        known.report = Some(Arc::new(report));
        Ok(true)
    }

    /// The latest report of an instance's domain.
    pub fn of(&self, uid: &str) -> Option<Arc<DomainReport>> {
        self.lock().get(uid)?.report.clone()
    }

    /// The owner of this UID.
    pub fn owner(&self, uid: &str) -> Option<Owner> {
        self.lock().get(uid).map(|known| known.owner.clone())
    }

    /// Everyone who has, or had, a domain here under this name.
    pub fn owners(&self, key: &NamespacedName) -> Vec<Owner> {
        self.lock().values().map(|known| &known.owner).filter(|owner| owner.key == *key).cloned().collect()
    }

    /// Everyone who has, or had, a domain here.
    pub fn all(&self) -> Vec<Owner> {
        self.lock().values().map(|known| known.owner.clone()).collect()
    }

    /// Forgets a domain, once nothing of it is left.
    pub fn forget(&self, uid: &str) -> io::Result<()> {
        let mut all = self.lock();
        self.records.remove(uid)?;
        all.remove(uid);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a report was not taken in.
#[derive(Debug, thiserror::Error)]
pub enum TellError {
    /// It is not believed.
    #[error(transparent)]
    Disbelief(#[from] Disbelief),
    /// It could not be written down.
    #[error("it cannot be written down: {0}")]
    Record(#[from] io::Error),
}

/// Whether a domain will never change again.
pub fn has_ended(report: &DomainReport) -> bool {
    report.metadata.deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests {
    use kubevirt_launcher_rpc::report::{DomainStatus, Reason, ReportMetadata, State};

    use super::*;
    use crate::testing::Folder;

    fn owner(name: &str, uid: &str) -> Owner {
        Owner { key: NamespacedName::new("default", name), uid: uid.into(), pod: format!("pod-{uid}") }
    }

    fn report(uid: &str, state: State, ended: bool) -> DomainReport {
        DomainReport {
            metadata: ReportMetadata {
                uid: uid.into(),
                deletion_timestamp: ended.then(|| "2026-01-01T00:00:00Z".into()),
                ..ReportMetadata::default()
            },
            status: DomainStatus { status: state, reason: Reason::Shutdown, ..DomainStatus::default() },
            spec: None,
        }
    }

    #[test]
    fn a_later_handler_knows_owners_and_ends() {
        let folder = Folder::new();
        let (web, db) = (owner("web", "1"), owner("db", "2"));
        {
            let domains = Domains::load(folder.path()).unwrap();
            assert!(domains.note(&web).unwrap());
            assert!(!domains.note(&web).unwrap());
            assert!(domains.note(&db).unwrap());
            assert!(domains.tell(&web, report("1", State::Running, false)).unwrap());
            assert!(!domains.tell(&web, report("1", State::Running, false)).unwrap());
            assert!(domains.tell(&db, report("2", State::Shutoff, true)).unwrap());
            // Nothing comes after the end.
            assert!(!domains.tell(&db, report("2", State::Running, false)).unwrap());
        }
        let domains = Domains::load(folder.path()).unwrap();
        assert_eq!(domains.all(), [web.clone(), db.clone()]);
        assert!(domains.of("1").is_none(), "a launcher that lives tells again");
        assert_eq!(domains.of("2").unwrap().status.status, State::Shutoff);
        domains.forget("2").unwrap();
        domains.forget("2").unwrap();
        assert_eq!(Domains::load(folder.path()).unwrap().all(), [web]);
    }

    #[test]
    fn pods_tell_of_their_own_instance_only() {
        let folder = Folder::new();
        let domains = Domains::load(folder.path()).unwrap();
        let web = owner("web", "1");
        domains.note(&web).unwrap();
        let other = domains.tell(&web, report("2", State::Running, false)).unwrap_err();
        assert!(other.to_string().contains("this pod runs 1"), "{other}");
        let unknown = domains.tell(&owner("db", "2"), report("2", State::Running, false)).unwrap_err();
        assert!(matches!(unknown, TellError::Disbelief(Disbelief::Forgotten(_))));
    }

    #[test]
    fn two_instances_of_one_name_are_kept_apart() {
        let folder = Folder::new();
        let domains = Domains::load(folder.path()).unwrap();
        domains.note(&owner("web", "1")).unwrap();
        domains.note(&owner("web", "2")).unwrap();
        assert_eq!(domains.owners(&NamespacedName::new("default", "web")).len(), 2);
        assert!(domains.owners(&NamespacedName::new("other", "web")).is_empty());
    }
}
