//! Leases between the JSON of the API server and the values of `states::lease`.
//!
//! A Lease of any content becomes a value: what is missing, of the wrong type or out of range never fails, and never
//! makes a held Lease look free.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};
use states::lease::{Lease, ResourceVersion, Spec, Uid};

use super::LEASE_NAME;

/// How many objects are kept: the one that the next write builds on, and those that may arrive while a request for it
/// is being made.
const KEPT: usize = 4;

/// The full objects of the Leases that were seen last, so that a write sends back everything that others put into
/// them (decision L9a).
#[derive(Debug, Default)]
pub(in crate::leadership) struct KnownObjects {
    latest: VecDeque<(Uid, ResourceVersion, Value)>,
}

// === impl KnownObjects ===

impl KnownObjects {
    /// Remembers an object and returns it as a value; `None` if it has no uid or no integer resourceVersion, as no
    /// API server sends it.
    pub(in crate::leadership) fn remember(&mut self, object: Value) -> Option<Lease> {
        let lease = to_lease(&object)?;
        let known = |(uid, version, _): &(Uid, ResourceVersion, Value)| *uid == lease.uid && *version == lease.version;
        if !self.latest.iter().any(known) {
            self.latest.push_front((lease.uid.clone(), lease.version, object));
            self.latest.truncate(KEPT);
        }
        Some(lease)
    }

    /// The body of an update that replaces the `spec` of the object at `version`.
    pub(in crate::leadership) fn update(
        &self,
        namespace: &str,
        uid: &Uid,
        version: ResourceVersion,
        spec: &Spec,
    ) -> Value {
        let exact = self.latest.iter().find(|(of, at, _)| of == uid && *at == version);
        let same = exact.or_else(|| self.latest.iter().find(|(of, ..)| of == uid));
        let mut object = same.map_or_else(|| empty(namespace), |(.., object)| object.clone());
        object["metadata"]["uid"] = json!(&**uid);
        object["metadata"]["resourceVersion"] = json!(version.0.to_string());
        write_spec(&mut object, spec);
        object
    }
}

/// The body of a create.
pub(in crate::leadership) fn create(namespace: &str, spec: &Spec) -> Value {
    let mut object = empty(namespace);
    write_spec(&mut object, spec);
    object
}

fn empty(namespace: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE_NAME, "namespace": namespace},
        "spec": {},
    })
}

fn to_lease(object: &Value) -> Option<Lease> {
    let uid = object.pointer("/metadata/uid")?.as_str()?.into();
    let version = object.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok()?;
    let spec = &object["spec"];
    let spec = Spec {
        holder: text(&spec["holderIdentity"]),
        acquire_time: microseconds(&spec["acquireTime"]),
        renew_time: microseconds(&spec["renewTime"]),
        duration_seconds: number(&spec["leaseDurationSeconds"]),
        transitions: number(&spec["leaseTransitions"]),
        strategy: text(&spec["strategy"]),
        preferred_holder: text(&spec["preferredHolder"]),
    };
    Some(Lease {
        uid,
        version: ResourceVersion(version),
        spec,
    })
}

/// A string; of anything else its JSON, which is as foreign a holder as any.
fn text(value: &Value) -> Option<std::sync::Arc<str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.as_str().into()),
        other => Some(other.to_string().into()),
    }
}

/// A number, brought into the range of the field.
fn number(value: &Value) -> Option<i32> {
    let clamped = value.as_i64()?.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
    i32::try_from(clamped).ok()
}

/// A time in microseconds. One that can't be read is still a time: it is only compared for equality, so a number that
/// depends on its text alone does.
fn microseconds(value: &Value) -> Option<i64> {
    if value.is_null() {
        return None;
    }
    let read = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    Some(read.map_or_else(
        || {
            let mut hasher = DefaultHasher::new();
            value.to_string().hash(&mut hasher);
            hasher.finish().cast_signed()
        },
        Timestamp::as_microsecond,
    ))
}

/// Replaces the fields of `spec` that the election knows and leaves others alone.
fn write_spec(object: &mut Value, spec: &Spec) {
    let mut fields = match object["spec"].take() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let known = [
        ("holderIdentity", spec.holder.as_deref().map(Value::from)),
        ("acquireTime", spec.acquire_time.map(time)),
        ("renewTime", spec.renew_time.map(time)),
        ("leaseDurationSeconds", spec.duration_seconds.map(Value::from)),
        ("leaseTransitions", spec.transitions.map(Value::from)),
        ("strategy", spec.strategy.as_deref().map(Value::from)),
        ("preferredHolder", spec.preferred_holder.as_deref().map(Value::from)),
    ];
    for (name, value) in known {
        match value {
            Some(value) => fields.insert(name.to_owned(), value),
            None => fields.remove(name),
        };
    }
    object["spec"] = Value::Object(fields);
}

/// A time with exactly six fractional digits: the API server takes no other (decision L7). Years beyond 9999 end there.
fn time(microseconds: i64) -> Value {
    let time = Timestamp::from_microsecond(microseconds).unwrap_or(Timestamp::MAX);
    Value::from(format!("{time:.6}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "reads better at the calls")]
    fn object(spec: Value) -> Value {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec,
               "metadata": {"name": "orchestratord", "namespace": "ns", "uid": "u", "resourceVersion": "7",
                            "labels": {"team": "data"}, "finalizers": ["example.com/keep"]}})
    }

    fn read(spec: Value) -> Spec {
        KnownObjects::default().remember(object(spec)).unwrap().spec
    }

    #[test]
    fn a_usual_lease_is_read() {
        let spec = read(
            json!({"holderIdentity": "pod-1", "acquireTime": "2026-01-01T00:00:00.000001Z",
            "renewTime": "2026-01-01T00:00:02.500000Z", "leaseDurationSeconds": 15, "leaseTransitions": 3}),
        );
        assert_eq!(spec.holder.as_deref(), Some("pod-1"));
        assert_eq!(spec.acquire_time, Some(1_767_225_600_000_001));
        assert_eq!(spec.renew_time, Some(1_767_225_602_500_000));
        assert_eq!((spec.duration_seconds, spec.transitions), (Some(15), Some(3)));
    }

    #[test]
    fn a_lease_of_any_content_is_data() {
        for spec in [
            json!(null),
            json!({}),
            json!("text"),
            json!([1]),
            json!({"holderIdentity": null}),
        ] {
            assert_eq!(read(spec), Spec::default());
        }
        let odd = read(
            json!({"holderIdentity": 5, "renewTime": "yesterday", "leaseDurationSeconds": "15",
            "leaseTransitions": 2_147_483_648_u64}),
        );
        assert_eq!(odd.holder.as_deref(), Some("5"), "no free Lease");
        assert!(odd.renew_time.is_some(), "no released Lease");
        assert_eq!((odd.duration_seconds, odd.transitions), (None, Some(i32::MAX)));
        assert_ne!(
            odd.renew_time,
            read(json!({"renewTime": "today"})).renew_time,
            "a change is seen"
        );
    }

    #[test]
    fn an_object_without_a_version_is_none() {
        for metadata in [
            json!({}),
            json!({"uid": "u"}),
            json!({"uid": "u", "resourceVersion": "x"}),
            json!(null),
        ] {
            assert_eq!(KnownObjects::default().remember(json!({"metadata": metadata})), None);
        }
    }

    #[test]
    fn an_update_keeps_what_others_wrote() {
        let mut known = KnownObjects::default();
        let lease = known
            .remember(object(
                json!({"holderIdentity": "pod-1", "leaseTransitions": 3, "future": {"a": 1}}),
            ))
            .unwrap();
        let spec = Spec {
            holder: Some("pod-2".into()),
            transitions: Some(4),
            ..Spec::default()
        };
        let body = known.update("ns", &lease.uid, lease.version, &spec);
        let expected = object(json!({"holderIdentity": "pod-2", "leaseTransitions": 4, "future": {"a": 1}}));
        assert_eq!(body, expected);
    }

    #[test]
    fn an_update_builds_on_the_version_that_it_names() {
        let mut known = KnownObjects::default();
        let old = known.remember(object(json!({}))).unwrap();
        let mut newer = object(json!({}));
        newer["metadata"]["resourceVersion"] = json!("8");
        newer["metadata"]["labels"] = json!({"team": "other"});
        known.remember(newer).unwrap();
        let body = known.update("ns", &old.uid, old.version, &Spec::default());
        assert_eq!(body["metadata"]["labels"]["team"], "data");
        assert_eq!(body["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn times_are_written_with_six_digits() {
        let spec = Spec {
            renew_time: Some(1_767_225_600_000_000),
            acquire_time: Some(1),
            ..Spec::default()
        };
        let body = create("ns", &spec);
        assert_eq!(body["spec"]["renewTime"], "2026-01-01T00:00:00.000000Z");
        assert_eq!(body["spec"]["acquireTime"], "1970-01-01T00:00:00.000001Z");
        assert!(body["metadata"].get("resourceVersion").is_none());
    }
}
