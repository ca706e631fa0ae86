//! Requests that are made again while others change the same object.

use std::future::Future;
use std::time::Duration;

use anyhow::Result;

use crate::failure::{Failure, Refusal};
use crate::subresource::Error;

/// How often a request is made at most.
const ATTEMPTS: u32 = 15;
/// How much longer the pause is after each attempt.
const PAUSE: Duration = Duration::from_millis(5);

/// Asks until nobody else's change gets in the way of it.
pub async fn overcome<F>(mut ask: impl FnMut() -> F) -> Result<()>
where
    F: Future<Output = Result<(), Error>>,
{
    for attempt in 1..=ATTEMPTS {
        match ask().await {
            Err(error) if error.refusal().is_some_and(is_contended) => {
                tokio::time::sleep(PAUSE * attempt).await;
            }
            done => return Ok(done?),
        }
    }
    let what = format!("others changed it each time in {ATTEMPTS} attempts");
    Err(Failure::new(what, "Try again in a moment.").into())
}

/// Whether the object changed after the server had looked at it. That an object is not in a state for the request is a
/// conflict too, but one that stays.
fn is_contended(refusal: &Refusal) -> bool {
    let said = |words: &str| refusal.message.contains(words);
    // What an API server says of a patch that does not apply to what is there, and KubeVirt's server after it.
    said("the server rejected our request due to an error in our request")
        || refusal.code == 409
            && (said("the object has been modified") || said("test operation does not apply"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn refusal(code: u16, message: &str) -> Refusal {
        Refusal { code, reason: String::new(), message: message.to_owned() }
    }

    #[test]
    fn only_a_change_in_between_is_tried_again() {
        let of = "Operation cannot be fulfilled on virtualmachines.kubevirt.io \"a\":";
        for (code, message, expected) in [
            (422, "the server rejected our request due to an error in our request".to_owned(), true),
            (
                409,
                format!("{of} the object has been modified; please apply your changes to the latest version"),
                true,
            ),
            (409, format!("{of} jsonpatch test operation does not apply: it changed in between"), true),
            (409, format!("{of} VM is not running"), false),
            (409, "volume data already exists".to_owned(), false),
            (422, "spec.template.spec.volumes[1].name: Duplicate value".to_owned(), false),
            (404, "not found".to_owned(), false),
        ] {
            assert_eq!(is_contended(&refusal(code, &message)), expected, "{code} {message}");
        }
    }

    #[tokio::test]
    async fn attempts_end_with_the_contention_or_at_last() {
        let changed = refusal(409, "the object has been modified");
        let asked = |until: u32, then: Option<Refusal>| {
            let (changed, count) = (changed.clone(), Cell::new(0));
            async move {
                let done = overcome(|| {
                    count.set(count.get() + 1);
                    let refused = if count.get() < until { Some(changed.clone()) } else { then.clone() };
                    std::future::ready(refused.map_or(Ok(()), |refusal| Err(refusal.into())))
                });
                (done.await.is_ok(), count.get())
            }
        };
        assert_eq!(asked(1, None).await, (true, 1));
        assert_eq!(asked(4, None).await, (true, 4));
        assert_eq!(asked(4, Some(refusal(404, "not found"))).await, (false, 4));
        assert_eq!(asked(100, None).await, (false, ATTEMPTS));
    }
}
