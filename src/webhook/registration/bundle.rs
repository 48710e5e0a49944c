//! Which certificate authorities the CRD names while replicas hold different ones (decision W4). Pure.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::api::labels::ANNOTATION_CA_BUNDLE;
use crate::webhook::certificates::{Authorities, Fingerprint};

/// How long after the newest addition authorities that are not this replica's own are kept: until then every replica
/// has seen its new files.
const OVERLAP: SignedDuration = SignedDuration::from_mins(10);

/// When which authority was added, and which was dropped once: the annotation's value.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Ledger(BTreeMap<String, Record>);

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    /// When it was added, or first seen.
    added: Timestamp,
    /// When it expires.
    not_after: Timestamp,
    /// Whether it was dropped once. If it comes back, somebody needs it: it stays until it expires.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dropped: bool,
}

/// What the CRD should name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Plan {
    /// The authorities.
    pub(super) bundle: Authorities,
    /// The annotation.
    pub(super) ledger: Ledger,
    /// When time alone will change it.
    pub(super) look_again: Option<Timestamp>,
}

/// Plans the bundle of a CRD that names `live`, for a replica whose own authorities are `own`.
pub(super) fn plan(live: &Authorities, ledger: &Ledger, own: &Authorities, now: Timestamp) -> Plan {
    let mut bundle = live.clone();
    bundle.extend(own);
    let mut records: BTreeMap<String, Record> = bundle
        .iter()
        .map(|(fingerprint, authority)| {
            // A time in the future, from a clock that was wrong, would keep everything for as long.
            let known = ledger
                .record(fingerprint)
                .filter(|record| record.added <= now + OVERLAP);
            let added = known
                .filter(|_| live.contains(fingerprint))
                .map_or(now, |record| record.added);
            let record = Record {
                added,
                not_after: authority.not_after,
                dropped: ledger.record(fingerprint).is_some_and(|record| record.dropped),
            };
            (fingerprint.as_str().to_owned(), record)
        })
        .collect();
    let newest = records.values().map(|record| record.added).max().unwrap_or(now);
    let settled = newest + OVERLAP;

    let mut look_again: Option<Timestamp> = None;
    bundle.retain(|fingerprint, authority| {
        if own.contains(fingerprint) {
            return true;
        }
        let Some(record) = records.get_mut(fingerprint.as_str()) else {
            return true;
        };
        // A replica without a certificate has nothing to put in its place.
        let until = if record.dropped || own.is_empty() {
            authority.not_after
        } else {
            authority.not_after.min(settled)
        };
        if now < until {
            look_again = Some(look_again.map_or(until, |other| other.min(until)));
            return true;
        }
        record.dropped = true;
        false
    });

    // What was dropped is remembered until it expires.
    records.retain(|fingerprint, record| bundle.contains(&fingerprint.clone().into()) || now < record.not_after);
    for (fingerprint, record) in &ledger.0 {
        if record.dropped && now < record.not_after && !records.contains_key(fingerprint) {
            records.insert(fingerprint.clone(), record.clone());
        }
    }
    Plan {
        bundle,
        ledger: Ledger(records),
        look_again,
    }
}

/// The authorities that a CRD names.
pub(super) fn live(crd: &CustomResourceDefinition) -> Authorities {
    bytes(crd).map_or_else(Authorities::default, Authorities::from_pem_lossy)
}

/// `caBundle` of a CRD as it is.
pub(super) fn bytes(crd: &CustomResourceDefinition) -> Option<&[u8]> {
    let client_config = crd.spec.conversion.as_ref()?.webhook.as_ref()?.client_config.as_ref()?;
    client_config.ca_bundle.as_ref().map(|bundle| bundle.0.as_slice())
}

// === impl Ledger ===

impl Ledger {
    /// The ledger of a CRD; empty if there is none that can be read.
    pub(super) fn of(crd: &CustomResourceDefinition) -> Self {
        let annotation = crd
            .metadata
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.get(ANNOTATION_CA_BUNDLE));
        annotation
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    }

    /// Writes it on `crd`.
    pub(super) fn write(&self, crd: &mut CustomResourceDefinition) {
        // A map of texts always serialises.
        let text = serde_json::to_string(self).unwrap_or_default();
        crd.metadata
            .annotations
            .get_or_insert_default()
            .insert(ANNOTATION_CA_BUNDLE.to_owned(), text);
    }

    /// When an authority was added, if that is known.
    pub(super) fn added(&self, fingerprint: &Fingerprint) -> Option<Timestamp> {
        self.record(fingerprint).map(|record| record.added)
    }

    fn record(&self, fingerprint: &Fingerprint) -> Option<&Record> {
        self.0.get(fingerprint.as_str())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::webhook::certificates::testing::{ca, hours, now};

    fn minutes(minutes: i64) -> Timestamp {
        now() + SignedDuration::from_mins(minutes)
    }

    fn authorities(pems: &[&str]) -> Authorities {
        Authorities::from_pem_lossy(pems.concat().as_bytes())
    }

    /// The plan at each step of a story, as the names of the bundle's authorities.
    struct Story {
        names: Vec<(&'static str, String)>,
        live: Authorities,
        ledger: Ledger,
    }

    impl Story {
        fn new(names: &[(&'static str, i64)]) -> Self {
            let names = names
                .iter()
                .map(|(name, until)| (*name, ca(name, hours(*until)).pem))
                .collect();
            Self {
                names,
                live: Authorities::default(),
                ledger: Ledger::default(),
            }
        }

        fn set(&self, names: &str) -> Authorities {
            let wanted = self.names.iter().filter(|(name, _)| names.contains(name));
            authorities(&wanted.map(|(_, pem)| pem.as_str()).collect::<Vec<_>>())
        }

        /// What a replica with `own` plans at `minute`, and when it looks again; the plan becomes the CRD.
        fn step(&mut self, own: &str, minute: i64) -> (String, Option<Timestamp>) {
            let Plan {
                bundle,
                ledger,
                look_again,
            } = plan(&self.live, &self.ledger, &self.set(own), minutes(minute));
            (self.live, self.ledger) = (bundle, ledger);
            let again = plan(&self.live, &self.ledger, &self.set(own), minutes(minute));
            assert_eq!(
                (&again.bundle, &again.ledger),
                (&self.live, &self.ledger),
                "a plan is kept"
            );
            let named = self
                .names
                .iter()
                .filter(|(name, _)| self.live.contains_all(&self.set(name)));
            (named.map(|(name, _)| *name).collect(), look_again)
        }
    }

    #[test]
    fn a_rotation_overlaps_for_ten_minutes_after_the_newest_addition() {
        let mut story = Story::new(&[("a", 1000), ("b", 1000)]);
        assert_eq!(story.step("a", 0), ("a".to_owned(), None));
        // The first replica has the new files, then the second.
        assert_eq!(story.step("ab", 60), ("ab".to_owned(), None));
        assert_eq!(story.step("b", 61), ("ab".to_owned(), Some(minutes(70))));
        assert_eq!(story.step("a", 65), ("ab".to_owned(), Some(minutes(70))));
        assert_eq!(story.step("b", 69), ("ab".to_owned(), Some(minutes(70))));
        assert_eq!(story.step("b", 70), ("b".to_owned(), None));
    }

    #[test]
    fn what_comes_back_stays_until_it_expires() {
        let mut story = Story::new(&[("a", 10), ("b", 1000)]);
        story.step("a", 0);
        story.step("b", 1);
        assert_eq!(story.step("b", 11).0, "b");
        // A replica with old files is still there.
        assert_eq!(story.step("a", 12).0, "ab");
        assert_eq!(story.step("b", 500), ("ab".to_owned(), Some(hours(10))));
        assert_eq!(story.step("b", 600), ("b".to_owned(), None));
    }

    #[test]
    fn an_addition_by_another_replica_starts_the_time_again() {
        let mut story = Story::new(&[("a", 1000), ("b", 1000), ("c", 1000)]);
        story.step("a", 0);
        story.step("b", 1);
        story.step("c", 8);
        assert_eq!(story.step("b", 17), ("abc".to_owned(), Some(minutes(18))));
        assert_eq!(story.step("b", 18).0, "b");
    }

    #[test]
    fn expired_ones_are_dropped_at_once_unless_they_are_our_own() {
        let mut story = Story::new(&[("a", -1), ("b", 1000)]);
        story.live = story.set("ab");
        assert_eq!(story.step("a", 0), ("ab".to_owned(), Some(minutes(10))));
        assert_eq!(story.step("b", 1), ("b".to_owned(), None));
    }

    #[test]
    fn without_an_entry_the_first_look_counts() {
        let mut story = Story::new(&[("a", 1000), ("b", 1000)]);
        story.live = story.set("ab");
        assert_eq!(story.step("b", 30), ("ab".to_owned(), Some(minutes(40))));
        // Nor does an entry from a clock that was wrong.
        let mut story = Story::new(&[("a", 1000), ("b", 1000)]);
        story.step("a", 100_000);
        assert_eq!(story.step("b", 30), ("ab".to_owned(), Some(minutes(40))));
    }

    #[test]
    fn a_replica_without_a_certificate_adds_nothing_and_drops_what_expired() {
        let mut story = Story::new(&[("a", 1000), ("b", 1)]);
        assert_eq!(story.step("", 0), (String::new(), None));
        story.step("a", 1);
        story.step("b", 2);
        assert_eq!(story.step("", 59), ("ab".to_owned(), Some(hours(1))));
        assert_eq!(story.step("", 60), ("a".to_owned(), Some(hours(1000))));
    }

    #[test]
    fn the_annotation_survives_garbage() {
        let mut crd = CustomResourceDefinition::default();
        let set = authorities(&[&ca("a", hours(9)).pem]);
        let ledger = plan(&Authorities::default(), &Ledger::default(), &set, now()).ledger;
        ledger.write(&mut crd);
        assert_eq!(Ledger::of(&crd), ledger);
        assert_eq!(ledger.added(set.iter().next().unwrap().0), Some(now()));
        crd.metadata
            .annotations
            .get_or_insert_default()
            .insert(ANNOTATION_CA_BUNDLE.to_owned(), "{".to_owned());
        assert_eq!(Ledger::of(&crd), Ledger::default());
    }
}
