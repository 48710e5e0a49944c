//! Fights over a CRD: how soon it is restored, and who the other one is (decision W6). Pure.

use std::collections::VecDeque;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::api::labels::FIELD_MANAGER;
use crate::clock::Moment;

/// Least time between two restorations; well below the 5 s within which each must happen.
const GAP: Duration = Duration::from_secs(2);
/// Time between two restorations in a fight.
const BACKED_OFF: Duration = Duration::from_mins(1);
/// So many restorations within [`WINDOW`] are a fight.
const FIGHT: usize = 3;
/// See [`FIGHT`].
const WINDOW: Duration = Duration::from_mins(10);

/// When a CRD was restored.
#[derive(Clone, Debug, Default)]
pub(super) struct Restorations(VecDeque<Moment>);

// === impl Restorations ===

impl Restorations {
    /// Notes one.
    pub(super) fn note(&mut self, now: Moment) {
        self.0.push_back(now);
        if self.0.len() > FIGHT {
            self.0.pop_front();
        }
    }

    /// Whether somebody changes it again and again.
    pub(super) fn is_fight(&self, now: Moment) -> bool {
        self.0.len() == FIGHT
            && self
                .0
                .front()
                .is_some_and(|first| now.saturating_since(*first) < WINDOW)
    }

    /// When to restore it next. `urgent`: users lose data or service meanwhile.
    pub(super) fn next(&self, urgent: bool, now: Moment) -> Moment {
        let Some(last) = self.0.back() else {
            return now;
        };
        let pause = if self.is_fight(now) && !urgent { BACKED_OFF } else { GAP };
        now.max(*last + pause)
    }
}

/// Who changed the CRD last, for a log line: another field manager, or somebody with our own name.
pub(super) fn last_writer(crd: &CustomResourceDefinition) -> String {
    let entries = crd.metadata.managed_fields.iter().flatten();
    let entries = entries.filter(|entry| entry.subresource.is_none());
    // Times have whole seconds: in the same one, the other was the reason for ours.
    let newest = entries.max_by_key(|entry| {
        let is_other = entry.manager.as_deref() != Some(FIELD_MANAGER);
        (entry.time.as_ref().map(|time| time.0), is_other)
    });
    let Some(entry) = newest else {
        return "unknown: the CRD has no managedFields".to_owned();
    };
    let manager = entry.manager.as_deref().unwrap_or("without a name");
    let time = entry
        .time
        .as_ref()
        .map_or_else(|| "an unknown time".to_owned(), |time| time.0.to_string());
    if manager == FIELD_MANAGER {
        format!("{manager}, as this operator calls itself, at {time}: another version of it, or another release")
    } else {
        format!("{manager} at {time}")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    fn at(seconds: u64) -> Moment {
        Duration::from_secs(seconds).into()
    }

    #[test]
    fn the_third_restoration_backs_off_unless_it_is_urgent() {
        let mut restorations = Restorations::default();
        assert_eq!(restorations.next(false, at(100)), at(100));
        restorations.note(at(100));
        assert_eq!(restorations.next(false, at(101)), at(102));
        restorations.note(at(102));
        assert_eq!(restorations.next(false, at(150)), at(150));
        restorations.note(at(150));
        assert!(restorations.is_fight(at(151)));
        assert_eq!(restorations.next(false, at(151)), at(210));
        assert_eq!(restorations.next(true, at(151)), at(152));
        restorations.note(at(210));
        assert!(restorations.is_fight(at(701)));
        assert!(!restorations.is_fight(at(702)), "ten minutes after 102");
        assert_eq!(restorations.next(false, at(702)), at(702));
    }

    #[test]
    fn the_last_writer_is_named() {
        let crd = |entries| -> CustomResourceDefinition {
            serde_json::from_value(json!({
                "metadata": {"name": "x", "managedFields": entries},
                "spec": {"group": "g", "names": {"kind": "K", "plural": "ks"}, "scope": "Namespaced", "versions": []},
            }))
            .unwrap()
        };
        let entry = |manager: &str, time: &str| json!({"manager": manager, "operation": "Update", "time": time});
        let (ours, theirs) = (
            entry(FIELD_MANAGER, "2026-01-01T00:00:00Z"),
            entry("kubectl-edit", "2026-01-01T00:00:01Z"),
        );
        let mut status = entry("kube-apiserver", "2026-01-01T00:00:09Z");
        status["subresource"] = json!("status");
        assert_eq!(
            last_writer(&crd(json!([ours, theirs, status]))),
            "kubectl-edit at 2026-01-01T00:00:01Z"
        );
        let at_once = entry("helm", "2026-01-01T00:00:00Z");
        for entries in [json!([ours, at_once]), json!([at_once, ours])] {
            assert!(last_writer(&crd(entries)).starts_with("helm at "));
        }
        assert!(last_writer(&crd(json!([ours]))).contains("another version of it"));
        assert!(last_writer(&crd(json!([]))).contains("unknown"));
    }
}
