//! A node in memory that must settle whatever happens to it, woken only by what wakes the controller.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::node::SILENCE;

const SECOND: Duration = Duration::from_secs(1);

/// What happens.
#[derive(Clone, Debug)]
enum Event {
    /// The handler says that it lives.
    Heartbeat,
    /// The handler takes guests, or none.
    Opened(bool),
    /// The node is removed.
    Removed,
    /// An instance is handed over to the node, with its pod or after it was lost.
    Came(u8, bool),
    /// The pod of an instance ends.
    PodEnded(u8),
    /// Our store of pods catches up.
    PodsSeen,
    /// Time passes.
    Passed(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Heartbeat),
        any::<bool>().prop_map(Event::Opened),
        Just(Event::Removed),
        (0..3u8, any::<bool>()).prop_map(|(guest, alive)| Event::Came(guest, alive)),
        (0..3u8).prop_map(Event::PodEnded),
        Just(Event::PodsSeen),
        (0..400u64).prop_map(Event::Passed),
    ]
}

#[derive(Clone, Default)]
struct Guest {
    failed: bool,
    pod_lives: bool,
    /// As our store has it.
    pod_seen: bool,
}

struct Cluster {
    now: Timestamp,
    /// Whether there is a node, and since when its handler was heard.
    node: Option<Option<Timestamp>>,
    open: bool,
    guests: BTreeMap<String, Guest>,
    due: Option<Timestamp>,
}

impl Cluster {
    fn new() -> Self {
        Self { now: now(), node: Some(None), open: false, guests: BTreeMap::new(), due: None }
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Heartbeat => self.node = Some(Some(self.now)),
            Event::Opened(open) => self.open = *open && self.node.is_some(),
            Event::Removed => (self.node, self.open) = (None, false),
            Event::Came(guest, alive) => {
                let new = Guest { pod_lives: *alive, pod_seen: false, failed: false };
                self.guests.entry(guest.to_string()).or_insert(new);
            }
            Event::PodEnded(guest) => {
                // Nobody tells us.
                self.guests.entry(guest.to_string()).and_modify(|guest| guest.pod_lives = false);
                return;
            }
            Event::PodsSeen => return self.guests.values_mut().for_each(|it| it.pod_seen = it.pod_lives),
            Event::Passed(seconds) => return self.wait(*seconds),
        }
        self.reconcile();
    }

    /// Lets time pass, with a look whenever one was asked for.
    fn wait(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        while let Some(due) = self.due.filter(|due| *due <= until) {
            self.now = due;
            self.reconcile();
        }
        self.now = until;
    }

    /// What the controller does at each look.
    fn reconcile(&mut self) {
        let mut plan = decide(&self.observe(false), self.now);
        if plan.look_for_pods {
            plan = decide(&self.observe(true), self.now);
            assert!(!plan.look_for_pods, "it asks for ever");
        }
        self.open &= !plan.mark_unschedulable;
        for uid in plan.lost.iter().filter_map(|vmi| vmi.metadata.uid.clone()) {
            assert!(!self.guests[&uid].pod_lives && !self.answers(), "a guest is given up that may be well");
            self.guests.entry(uid).and_modify(|guest| guest.failed = true);
        }
        self.due = plan.recheck.map(|pause| self.now + pause.max(SECOND));
    }

    fn observe(&self, pods_confirmed: bool) -> Observed {
        let heartbeat = |heard: Option<Timestamp>| heard.map(|heard| heard.to_string());
        let lives = |guest: &Guest| if pods_confirmed { guest.pod_lives } else { guest.pod_seen };
        let with_pod = self.guests.iter().filter(|(_, guest)| lives(guest));
        Observed {
            node: self.node.and_then(|heard| node(heartbeat(heard).as_deref(), &self.open.to_string())),
            vmis: self.guests.iter().filter(|(_, it)| !it.failed).map(|(uid, _)| vmi(uid)).collect(),
            with_pod: with_pod.map(|(uid, _)| uid.clone()).collect(),
            pods_confirmed,
            handler_runs: false,
        }
    }

    /// Whether the handler was heard of lately, or never, of which nothing follows.
    fn answers(&self) -> bool {
        let silence = |heard: Timestamp| Duration::try_from(self.now.duration_since(heard)).unwrap();
        self.node.is_some_and(|heard| heard.is_none_or(|heard| silence(heard) < SILENCE))
    }
}

proptest! {
    /// Whatever happened, a node that goes silent or is gone takes no guests and keeps none without a pod, although
    /// nothing happens any more that would wake us. One that answers keeps all.
    #[test]
    fn it_settles(events in prop::collection::vec(event(), 0..40)) {
        let mut cluster = Cluster::new();
        for event in &events {
            cluster.happen(event);
        }
        cluster.happen(&Event::PodsSeen);
        cluster.wait(2 * SILENCE.as_secs());
        if cluster.answers() {
            prop_assert_eq!(cluster.node, Some(None), "it was heard of, and then no more");
        } else {
            prop_assert!(!cluster.open);
            for (name, guest) in &cluster.guests {
                prop_assert!(guest.pod_lives || guest.failed, "{} is lost, and nobody says so", name);
            }
        }
        // At rest: another look finds nothing to do.
        let plan = decide(&cluster.observe(true), cluster.now);
        prop_assert!(!plan.mark_unschedulable && plan.lost.is_empty(), "{:?}", plan);
    }
}
