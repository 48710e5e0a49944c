//! Which pair to serve, and when the next look is due (decisions W3 and W4). Pure.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::authority::{Authorities, Validity};
use super::pair::Digest;
use crate::clock::Moment;
use crate::webhook::sightings::Sightings;

/// So long before its end a pair gives way to its successor even if the CRD does not name the successor's authority.
const LAST_MOMENT: SignedDuration = SignedDuration::from_mins(1);

/// What there is to know of a pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) digest: Digest,
    pub(super) authorities: &'a Authorities,
    pub(super) validity: Validity,
}

/// What to do with a usable pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// It is the one that is served.
    Keep,
    /// Serve it now.
    Serve,
    /// The API servers don't all know its authority yet: look again at this moment.
    Wait(Moment),
    /// The CRD does not name its authority yet: look again when that changes, or at this time.
    Register(Timestamp),
}

/// Decides about `next`, given the pair that is `served`.
pub(super) fn step(
    served: Option<Candidate<'_>>,
    next: Candidate<'_>,
    sightings: &Sightings,
    moment: Moment,
    now: Timestamp,
) -> Step {
    let Some(served) = served else {
        return Step::Serve;
    };
    if served.digest == next.digest {
        return Step::Keep;
    }
    let last = served.validity.not_after - LAST_MOMENT;
    match settled_at(next.authorities, sightings) {
        _ if last <= now => Step::Serve,
        Some(at) if at <= moment => Step::Serve,
        Some(at) => Step::Wait(at),
        None => Step::Register(last),
    }
}

/// From when on every API server goes by all of `authorities`; none while the CRD lacks one.
pub(super) fn settled_at(authorities: &Authorities, sightings: &Sightings) -> Option<Moment> {
    let mut latest = Moment::START;
    for (fingerprint, _) in authorities.iter() {
        latest = latest.max(sightings.settled_at(fingerprint)?);
    }
    Some(latest)
}

/// How close a certificate is to its end.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Alarm {
    /// It will expire soon: somebody should look why it is not renewed.
    Warning,
    /// It will expire very soon, or has expired.
    Error,
}

/// The alarm for a certificate at `now`, if any.
pub(super) fn alarm(validity: Validity, now: Timestamp) -> Option<Alarm> {
    let lifetime = validity.not_after.duration_since(validity.not_before);
    let left = validity.not_after.duration_since(now);
    let within = |days: i64, part: i32| left <= SignedDuration::from_hours(24 * days).min(lifetime / part);
    if within(2, 30) {
        Some(Alarm::Error)
    } else if within(14, 6) {
        Some(Alarm::Warning)
    } else {
        None
    }
}

/// How often the files are looked at.
pub(super) fn look_every(interval: Duration) -> Duration {
    interval.min(Duration::from_secs(10))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::webhook::certificates::testing::{NAME, ca, hours, now};
    use crate::webhook::certificates::{Fingerprint, Pair};
    use crate::webhook::sightings::Sighting;

    fn candidate(pair: &Pair) -> Candidate<'_> {
        Candidate {
            digest: pair.digest,
            authorities: &pair.authorities,
            validity: pair.validity,
        }
    }

    fn at(seconds: u64) -> Moment {
        Duration::from_secs(seconds).into()
    }

    fn fingerprint(pair: &Pair) -> Fingerprint {
        pair.authorities.iter().next().unwrap().0.clone()
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn a_pair_waits_for_its_authority() {
        let (old_ca, new_ca) = (ca("old", hours(9000)), ca("new", hours(9000)));
        let pair = |ca: &crate::webhook::certificates::testing::Ca, until| {
            Pair::read(&ca.material(hours(until)), NAME, now()).unwrap()
        };
        let (old, renewed, new) = (pair(&old_ca, 100), pair(&old_ca, 200), pair(&new_ca, 200));
        let nothing = Sightings::default();
        let sighting = |pair: &Pair| Sighting {
            fingerprint: fingerprint(pair),
            age: None,
        };
        let old_only = nothing.after([sighting(&old)], false, at(0));
        let both = old_only.after([sighting(&old), sighting(&new)], false, at(50));
        let last = hours(100) - LAST_MOMENT;
        let second = SignedDuration::from_secs(1);
        let cases = [
            (
                "the first is served at once",
                None,
                &new,
                &nothing,
                at(1),
                now(),
                Step::Serve,
            ),
            ("the same is kept", Some(&old), &old, &nothing, at(1), now(), Step::Keep),
            (
                "the authority is known",
                Some(&old),
                &renewed,
                &old_only,
                at(1),
                now(),
                Step::Serve,
            ),
            (
                "it is not",
                Some(&old),
                &new,
                &old_only,
                at(1),
                now(),
                Step::Register(last),
            ),
            (
                "the CRD can't be read",
                Some(&old),
                &renewed,
                &nothing,
                at(1),
                now(),
                Step::Register(last),
            ),
            (
                "it was just added",
                Some(&old),
                &new,
                &both,
                at(51),
                now(),
                Step::Wait(at(55)),
            ),
            (
                "five seconds later",
                Some(&old),
                &new,
                &both,
                at(55),
                now(),
                Step::Serve,
            ),
            (
                "before the last moment",
                Some(&old),
                &new,
                &old_only,
                at(1),
                last - second,
                Step::Register(last),
            ),
            (
                "at the last moment",
                Some(&old),
                &new,
                &old_only,
                at(1),
                last,
                Step::Serve,
            ),
            (
                "after the end",
                Some(&old),
                &new,
                &both,
                at(51),
                hours(101),
                Step::Serve,
            ),
        ];
        for (what, served, next, sightings, moment, time, expected) in cases {
            let found = step(served.map(candidate), candidate(next), sightings, moment, time);
            assert_eq!(found, expected, "{what}");
        }
    }

    #[test]
    fn alarms_come_by_the_shorter_of_days_and_share_of_the_lifetime() {
        let validity = |hours_in_all: i64| Validity {
            not_before: now(),
            not_after: hours(hours_in_all),
        };
        let days = 24;
        for (lifetime, left, expected) in [
            (365 * days, 15 * days, None),
            (365 * days, 14 * days, Some(Alarm::Warning)),
            (365 * days, 2 * days + 1, Some(Alarm::Warning)),
            (365 * days, 2 * days, Some(Alarm::Error)),
            (60, 11, None),
            (60, 10, Some(Alarm::Warning)),
            (60, 3, Some(Alarm::Warning)),
            (60, 2, Some(Alarm::Error)),
            (60, -5, Some(Alarm::Error)),
        ] {
            assert_eq!(
                alarm(validity(lifetime), hours(lifetime - left)),
                expected,
                "{left} of {lifetime} hours left"
            );
        }
    }

    #[test]
    fn files_are_looked_at_every_ten_seconds_or_more_often() {
        assert_eq!(look_every(Duration::from_hours(1)), Duration::from_secs(10));
        assert_eq!(look_every(Duration::from_secs(3)), Duration::from_secs(3));
    }
}
