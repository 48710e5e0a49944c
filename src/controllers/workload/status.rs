//! The conditions of a Balancer or Console: what they become. No I/O.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use super::stall::Stall;
use crate::api::conditions::{DEPLOYMENT_STATUS, READY, STALLED};

/// The conditions after `before`: `Ready` first, as the Deployment says or, if it says nothing, as before; then
/// `Stalled` while there is a stall (decision R5). All others go.
///
/// `generation` is the resource's own; `now` becomes the time of transitions, in whole seconds.
pub(super) fn next(
    before: &[Condition],
    ready: Option<(bool, String)>,
    stall: Option<&Stall>,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let said = |type_: &str| before.iter().find(|condition| condition.type_ == type_);
    let since = |type_: &str, status: &str| {
        said(type_)
            .filter(|condition| condition.status == status)
            .map_or(Time(whole_seconds(now)), |condition| {
                condition.last_transition_time.clone()
            })
    };
    let ready = match ready {
        None => said(READY).cloned(),
        Some((ready, message)) => {
            let status = if ready { "True" } else { "False" };
            Some(Condition {
                type_: READY.to_owned(),
                status: status.to_owned(),
                reason: DEPLOYMENT_STATUS.to_owned(),
                message,
                observed_generation: None,
                last_transition_time: since(READY, status),
            })
        }
    };
    let stalled = stall.map(|stall| Condition {
        type_: STALLED.to_owned(),
        status: "True".to_owned(),
        reason: stall.reason().to_owned(),
        message: stall.to_string(),
        observed_generation: generation,
        last_transition_time: since(STALLED, "True"),
    });
    ready.into_iter().chain(stalled).collect()
}

/// The condition `Stalled` of `after`, if it says something else than before.
pub(super) fn new_stall<'a>(before: &[Condition], after: &'a [Condition]) -> Option<&'a Condition> {
    let stalled = after.iter().find(|condition| condition.type_ == STALLED)?;
    let same = |old: &Condition| old.type_ == STALLED && old.reason == stalled.reason && old.message == stalled.message;
    (!before.iter().any(same)).then_some(stalled)
}

/// `time` as the API server stores it.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn ready(is: bool, message: &str) -> (bool, String) {
        (is, message.to_owned())
    }

    fn no_routing() -> Stall {
        Stall::InvalidRouting("no routing configuration present".to_owned())
    }

    #[test]
    fn ready_is_as_published() {
        let now = Timestamp::from_millisecond(1_800_000_000_700).unwrap();
        let conditions = next(
            &[],
            Some(ready(true, "balancerd deployment is ready")),
            None,
            Some(3),
            now,
        );
        assert_eq!(
            json!(conditions),
            json!([{
                "type": "Ready", "status": "True", "reason": "DeploymentStatus",
                "message": "balancerd deployment is ready", "lastTransitionTime": "2027-01-15T08:00:00Z",
            }])
        );
    }

    #[test]
    fn the_time_changes_only_with_the_status() {
        let first = next(&[], Some(ready(false, "a")), None, None, at(0));
        let second = next(&first, Some(ready(false, "b")), None, None, at(10));
        assert_eq!(second[0].message, "b");
        assert_eq!(second[0].last_transition_time, Time(at(0)));
        let third = next(&second, Some(ready(true, "c")), None, None, at(20));
        assert_eq!(third[0].last_transition_time, Time(at(20)));
    }

    #[test]
    fn nothing_new_is_the_same_list() {
        let stall = no_routing();
        let first = next(&[], Some(ready(true, "a")), Some(&stall), Some(1), at(0));
        assert_eq!(
            next(&first, Some(ready(true, "a")), Some(&stall), Some(1), at(9)),
            first
        );
        assert_eq!(
            next(&first, None, Some(&stall), Some(1), at(9)),
            first,
            "the Deployment says nothing"
        );
    }

    #[test]
    fn a_stall_stands_behind_ready_and_goes_without_a_trace() {
        let first = next(&[], Some(ready(true, "a")), Some(&no_routing()), Some(4), at(0));
        let types: Vec<_> = first.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(types, ["Ready", "Stalled"]);
        assert_eq!(json!(first[1])["reason"], "InvalidRouting");
        assert_eq!(json!(first[1])["observedGeneration"], 4);
        let second = next(&first, Some(ready(true, "a")), None, Some(5), at(5));
        assert_eq!(second, first[..1]);
    }

    #[test]
    fn conditions_of_others_are_replaced() {
        let foreign: Vec<Condition> = serde_json::from_value(json!([{
            "type": "Other", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]))
        .unwrap();
        assert_eq!(next(&foreign, None, None, None, at(0)), []);
    }

    #[test]
    fn only_another_stall_is_new() {
        let before = next(&[], None, Some(&no_routing()), Some(1), at(0));
        let same = next(&before, None, Some(&no_routing()), Some(2), at(9));
        assert_eq!(new_stall(&before, &same), None);
        let other = next(&before, None, Some(&Stall::CertManagerNotInstalled), Some(2), at(9));
        assert_eq!(
            new_stall(&before, &other).map(|c| json!(c.reason)),
            Some(Value::from("CertManagerNotInstalled"))
        );
        assert_eq!(new_stall(&before, &[]), None);
    }
}
