//! Who watches what: a console or a display has one viewer at a time, a machine some places for USB devices.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How long a viewer who was asked to leave may take.
const LEAVING: Duration = Duration::from_secs(5);

/// How many USB devices of users a machine can have.
const USB_DEVICES: usize = 4;

/// The viewers of one kind, by the UID of the instance. The latest comes first, and the one before must go.
#[derive(Clone, Debug, Default)]
pub(super) struct Seats(Arc<Mutex<BTreeMap<String, Taken>>>);

#[derive(Clone, Debug, Default)]
struct Taken {
    /// Somebody else wants the seat.
    leave: CancellationToken,
    /// The seat is free.
    left: CancellationToken,
}

/// Somebody watches and does not want to be disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occupied;

/// A viewer's seat, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    all: Seats,
    uid: String,
    taken: Taken,
}

impl Seats {
    /// Takes the seat. Whoever has it leaves first, unless the newcomer does not want that.
    pub(super) async fn take(&self, uid: &str, only_if_free: bool) -> Result<Seat, Occupied> {
        let taken = Taken::default();
        let before = {
            let mut all = self.lock();
            if only_if_free && all.contains_key(uid) {
                return Err(Occupied);
            }
            all.insert(uid.to_owned(), taken.clone())
        };
        let seat = Seat { all: self.clone(), uid: uid.to_owned(), taken };
        if let Some(before) = before {
            before.leave.cancel();
            let _ = tokio::time::timeout(LEAVING, before.left.cancelled()).await;
        }
        Ok(seat)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Taken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Waits until somebody else wants it.
    pub(super) async fn wanted(&self) {
        self.taken.leave.cancelled().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.taken.left.cancel();
        // It may be somebody else's by now, who has asked us to leave.
        if !self.taken.leave.is_cancelled() {
            self.all.lock().remove(&self.uid);
        }
    }
}

/// Places for USB devices, by the UID of the instance.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots(Arc<Mutex<BTreeSet<(String, usize)>>>);

/// A place for a USB device, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    all: Slots,
    place: (String, usize),
}

impl Slots {
    /// Takes the first place that is free.
    pub(super) fn take(&self, uid: &str) -> Option<Slot> {
        let mut taken = self.lock();
        let mut places = (0..USB_DEVICES).map(|number| (uid.to_owned(), number));
        let place = places.find(|place| !taken.contains(place))?;
        taken.insert(place.clone());
        Some(Slot { all: self.clone(), place })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(String, usize)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Its number.
    pub(super) fn number(&self) -> usize {
        self.place.1
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.all.lock().remove(&self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_latest_viewer_has_the_seat() {
        let seats = Seats::default();
        let first = seats.take("a", false).await.unwrap();
        let _other = seats.take("b", true).await.unwrap();
        assert_eq!(seats.take("a", true).await.unwrap_err(), Occupied);
        let second = tokio::spawn({
            let seats = seats.clone();
            async move { seats.take("a", false).await }
        });
        first.wanted().await;
        assert!(!second.is_finished(), "the first has not left yet");
        drop(first);
        let second = second.await.unwrap().unwrap();
        assert_eq!(seats.take("a", true).await.unwrap_err(), Occupied, "the second has it now");
        drop(second);
        assert!(seats.take("a", true).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_viewer_who_does_not_leave_is_not_waited_for_forever() {
        let seats = Seats::default();
        let first = seats.take("a", false).await.unwrap();
        let second = seats.take("a", false).await.unwrap();
        drop(first);
        assert_eq!(seats.take("a", true).await.unwrap_err(), Occupied);
        drop(second);
        assert!(seats.lock().is_empty());
    }

    #[test]
    fn usb_places_are_taken_in_order_and_given_back() {
        let slots = Slots::default();
        let mut taken: Vec<_> = (0..USB_DEVICES).map(|_| slots.take("a").unwrap()).collect();
        assert_eq!(taken.iter().map(Slot::number).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(slots.take("a").is_none());
        assert_eq!(slots.take("b").unwrap().number(), 0);
        taken.remove(1);
        assert_eq!(slots.take("a").unwrap().number(), 1);
    }
}
