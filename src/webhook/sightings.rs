//! What the CRD says, as far as the served certificate depends on it: the link from `registration` to `certificates`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Moment;

use super::certificates::Fingerprint;

/// How long an API server may go on with the CRD as it was: each has a cache of its own (decision W4).
pub const PROPAGATION: Duration = Duration::from_secs(5);

/// The authorities that the CRD names, as this replica has seen them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Sightings {
    /// From when on every API server goes by an authority.
    settled: BTreeMap<Fingerprint, Moment>,
    /// Whether the CRD has been read at all.
    looked: bool,
    /// Another definition of the CRD stands, and it has no webhook: no authority is needed.
    without_webhook: bool,
}

/// An authority as it stands in the CRD.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// The authority.
    pub fingerprint: Fingerprint,
    /// How long ago it was added, if that is known.
    pub age: Option<Duration>,
}

// === impl Sightings ===

impl Sightings {
    /// The same after a look at the CRD at `now`, which names `authorities`. What was there at the first look has
    /// settled already unless it is known to be younger than [`PROPAGATION`].
    #[must_use]
    pub fn after(&self, authorities: impl IntoIterator<Item = Sighting>, without_webhook: bool, now: Moment) -> Self {
        let settled = authorities.into_iter().map(|Sighting { fingerprint, age }| {
            let wait = match (self.looked, age) {
                (true, _) => PROPAGATION,
                (false, age) => age.map_or(Duration::ZERO, |age| PROPAGATION.saturating_sub(age)),
            };
            let at = self.settled.get(&fingerprint).copied().unwrap_or(now + wait);
            (fingerprint, at)
        });
        Self {
            settled: settled.collect(),
            looked: true,
            without_webhook,
        }
    }

    /// From when on every API server goes by this authority; none while the CRD does not name it.
    pub fn settled_at(&self, fingerprint: &Fingerprint) -> Option<Moment> {
        self.settled.get(fingerprint).copied()
    }

    /// Whether the CRD stands without a webhook, by another operator's decision.
    pub fn without_webhook(&self) -> bool {
        self.without_webhook
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, age: Option<u64>) -> Sighting {
        Sighting {
            fingerprint: name.to_owned().into(),
            age: age.map(Duration::from_secs),
        }
    }

    #[test]
    fn what_was_there_has_settled_and_what_comes_takes_five_seconds() {
        let at = |seconds| Moment::from(Duration::from_secs(seconds));
        let settled = |sightings: &Sightings, name: &str| sightings.settled_at(&name.to_owned().into());
        let first = Sightings::default().after(
            [seen("old", Some(60)), seen("unknown", None), seen("young", Some(2))],
            false,
            at(100),
        );
        assert_eq!(settled(&first, "old"), Some(at(100)));
        assert_eq!(settled(&first, "unknown"), Some(at(100)));
        assert_eq!(settled(&first, "young"), Some(at(103)));
        assert_eq!(settled(&first, "absent"), None);
        let second = first.after([seen("old", None), seen("absent", Some(60))], false, at(200));
        assert_eq!(settled(&second, "old"), Some(at(100)));
        assert_eq!(settled(&second, "absent"), Some(at(205)));
        assert_eq!(settled(&second, "young"), None);
        let third = second.after([seen("young", Some(60))], false, at(300));
        assert_eq!(settled(&third, "young"), Some(at(305)), "it had been away");
    }
}
