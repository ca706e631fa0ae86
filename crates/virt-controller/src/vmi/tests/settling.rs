//! From any state, the controller comes to rest, and always at the same.

use proptest::prelude::*;

use super::model::{DEEDS, Deed, Lag, World};

fn deeds() -> impl Strategy<Value = Vec<(Deed, bool, bool, bool)>> {
    let deed = proptest::sample::select(DEEDS.to_vec());
    proptest::collection::vec((deed, any::<bool>(), any::<bool>(), any::<bool>()), 0..24)
}

/// Lets all of it happen; after some of it the controller has a look, with stores that may lag behind.
fn after(world: &mut World, deeds: &[(Deed, bool, bool, bool)]) {
    for (deed, looks, vmi, pods) in deeds {
        world.happen(deed);
        if *looks {
            world.reconcile(Lag { vmi: *vmi, pods: *pods });
        }
    }
}

/// What is left when versions are forgotten, which tell how often something was written.
fn essence(world: &World) -> (Option<serde_json::Value>, Vec<serde_json::Value>) {
    let strip = |mut object: serde_json::Value| {
        object["metadata"]["resourceVersion"] = serde_json::Value::Null;
        object["metadata"]["uid"] = serde_json::Value::Null;
        object
    };
    let vmi = world.vmi.as_ref().map(|vmi| {
        let mut vmi = serde_json::to_value(vmi).unwrap();
        // Keys are UIDs, which the model gives out in turn.
        vmi["status"]["activePods"] = serde_json::Value::Null;
        for volume in vmi["status"]["volumeStatus"].as_array_mut().into_iter().flatten() {
            volume["hotplugVolume"]["attachPodUID"] = serde_json::Value::Null;
        }
        // A store that lags behind may notice a passing phase or not.
        vmi["status"]["phaseTransitionTimestamps"] = serde_json::Value::Null;
        strip(vmi)
    });
    let pods = world.pods.values().map(|pod| {
        let mut pod = serde_json::to_value(pod).unwrap();
        pod["metadata"]["ownerReferences"] = serde_json::Value::Null;
        strip(pod)
    });
    (vmi, pods.collect())
}

/// Lets kubelet and importer do all that they have to.
fn run_on(world: &mut World) {
    world.settle(Lag::default);
    for _ in 0..3 {
        for deed in [Deed::FillVolume, Deed::Schedule, Deed::StartContainers, Deed::Remove] {
            world.happen(&deed);
            world.settle(Lag::default);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn it_settles_whatever_happened(waits in any::<bool>(), deeds in deeds()) {
        let mut world = World::new(waits);
        after(&mut world, &deeds);
        world.settle(Lag::default);
        prop_assert!(world.most_launchers <= 1, "{} launchers at once", world.most_launchers);
    }

    #[test]
    fn it_settles_at_the_same_with_stores_that_lag_behind(
        waits in any::<bool>(), deeds in deeds(), lags in proptest::collection::vec((any::<bool>(), any::<bool>()), 4),
    ) {
        let mut world = World::new(waits);
        after(&mut world, &deeds);
        let mut late = world.clone();
        let mut lags = lags.into_iter();
        late.settle(|| lags.next().map(|(vmi, pods)| Lag { vmi, pods }).unwrap_or_default());
        run_on(&mut world);
        run_on(&mut late);
        prop_assert!(late.most_launchers <= 1, "{} launchers at once", late.most_launchers);
        prop_assert_eq!(essence(&world), essence(&late));
    }

    #[test]
    fn nothing_is_left_of_what_was_deleted(waits in any::<bool>(), deeds in deeds()) {
        let mut world = World::new(waits);
        after(&mut world, &deeds);
        world.happen(&Deed::DeleteVmi);
        for _ in 0..4 {
            world.settle(Lag::default);
            world.happen(&Deed::Remove);
        }
        world.settle(Lag::default);
        prop_assert_eq!(world.phase(), "gone");
        prop_assert!(world.pods.is_empty());
    }
}

#[test]
fn an_instance_is_written_twice_on_its_way_to_the_node() {
    let mut world = World::new(false);
    world.settle(Lag::default);
    for deed in [Deed::Schedule, Deed::StartContainers] {
        world.happen(&deed);
        world.settle(Lag::default);
    }
    assert_eq!(world.phase(), "Scheduled");
    assert_eq!(world.writes, 2);
    world.happen(&Deed::GuestRuns);
    world.happen(&Deed::BecomeReady);
    world.settle(Lag::default);
    // Readiness is one more, and it comes after the guest runs.
    assert_eq!((world.phase().as_str(), world.writes), ("Running", 3));
}

#[test]
fn a_volume_that_waits_for_its_first_consumer_gets_one() {
    let mut world = World::new(true);
    world.settle(Lag::default);
    assert!(world.pods.contains_key("virt-launcher-web-t"));
    for deed in [Deed::Schedule, Deed::StartContainers, Deed::FillVolume] {
        world.happen(&deed);
        world.settle(Lag::default);
    }
    assert_eq!(world.pods.keys().collect::<Vec<_>>(), ["virt-launcher-web-x"]);
    assert_eq!(world.phase(), "Scheduling");
}
