//! Live objects here have the form in which an API server returns them after an apply: defaults filled in,
//! quantities rewritten, `managedFields` as recorded.

use serde_json::json;

use super::*;

const MANAGER: &str = "ours";

/// What is applied.
fn desired() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {
            "name": "a", "namespace": "ns",
            "labels": {"app": "a"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u1"}],
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": {"app": "a"}, "annotations": {}},
                "spec": {
                    "containers": [{
                        "name": "main", "image": "i:1", "args": ["--a", "--b"],
                        "env": [{"name": "X", "value": "1"}],
                        "ports": [{"containerPort": 80}],
                        "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}},
                    }],
                    "tolerations": [],
                },
            },
        },
    })
}

/// What the API server makes of it.
fn live() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {
            "name": "a", "namespace": "ns", "uid": "u2", "resourceVersion": "7", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "a"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u1"}],
            "managedFields": [
                {"manager": "ours", "operation": "Update", "subresource": "status", "fieldsType": "FieldsV1",
                 "fieldsV1": {"f:status": {"f:gone": {}}}},
                {"manager": "ours", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                 "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:app": {}}, "f:ownerReferences": {"k:{\"uid\":\"u1\"}": {}}},
                    "f:spec": {
                        "f:replicas": {}, "f:selector": {},
                        "f:template": {
                            "f:metadata": {"f:annotations": {}, "f:labels": {"f:app": {}}},
                            "f:spec": {
                                "f:containers": {"k:{\"name\":\"main\"}": {
                                    ".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                                    "f:env": {"k:{\"name\":\"X\"}": {".": {}, "f:name": {}, "f:value": {}}},
                                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                                    "f:resources": {"f:limits": {"f:cpu": {}, "f:memory": {}}},
                                }},
                                "f:tolerations": {},
                            },
                        },
                    },
                 }},
            ],
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "a"}},
            "serviceName": "",
            "template": {
                "metadata": {"labels": {"app": "a"}},
                "spec": {
                    "containers": [{
                        "name": "main", "image": "i:1", "args": ["--a", "--b"],
                        "env": [{"name": "X", "value": "1"}],
                        "ports": [{"containerPort": 80, "protocol": "TCP"}],
                        "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
                        "imagePullPolicy": "IfNotPresent",
                    }],
                    "dnsPolicy": "ClusterFirst",
                },
            },
        },
        "status": {"replicas": 1},
    })
}

/// The difference after `change` was made to what is applied (`"desired"`) or to the live object (`"live"`): a merge
/// at this pointer.
fn after(side: &str, pointer: &str, value: Value) -> Option<(String, DifferenceKind)> {
    let (mut desired, mut live) = (desired(), live());
    let object = if side == "desired" { &mut desired } else { &mut live };
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match object.pointer_mut(parent).unwrap() {
        Value::Array(items) if name == "-" => items.push(value),
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        Value::Object(members) if value.is_null() => assert!(members.remove(name).is_some()),
        Value::Object(members) => drop(members.insert(name.to_owned(), value)),
        other => panic!("{pointer} is in {other}"),
    }
    first_difference(&desired, &live, MANAGER).map(|difference| (difference.path, difference.kind))
}

#[test]
fn the_object_as_the_server_returns_it_does_not_differ() {
    assert_eq!(first_difference(&desired(), &live(), MANAGER), None);
}

#[test]
fn what_others_add_is_left_alone() {
    let container = "/spec/template/spec/containers";
    for (pointer, value) in [
        ("/metadata/annotations", json!({"theirs": "1"})),
        ("/metadata/labels/theirs", json!("1")),
        ("/metadata/finalizers", json!(["theirs"])),
        (
            "/metadata/ownerReferences/-",
            json!({"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u9"}),
        ),
        (
            "/spec/template/metadata/annotations",
            json!({"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}),
        ),
        (&format!("{container}/-"), json!({"name": "sidecar", "image": "s"})),
        (&format!("{container}/0/env/-"), json!({"name": "THEIRS", "value": "1"})),
        (
            &format!("{container}/0/ports/-"),
            json!({"containerPort": 81, "protocol": "TCP"}),
        ),
        ("/spec/template/spec/priorityClassName", json!("high")),
    ] {
        assert_eq!(after("live", pointer, value), None, "{pointer}");
    }
}

#[test]
fn a_foreign_change_of_our_field_is_found() {
    use DifferenceKind::{Missing, Value as Other};
    let container = "/spec/template/spec/containers/0";
    let path = "spec.template.spec.containers[name=main]";
    for (pointer, value, expected, kind) in [
        ("/spec/replicas", json!(2), "spec.replicas".to_owned(), Other),
        ("/spec/replicas", json!(null), "spec.replicas".to_owned(), Missing),
        (
            "/metadata/labels/app",
            json!("b"),
            "metadata.labels.app".to_owned(),
            Other,
        ),
        ("/metadata/labels", json!(null), "metadata.labels".to_owned(), Missing),
        (
            "/metadata/ownerReferences",
            json!(null),
            "metadata.ownerReferences[uid=u1]".to_owned(),
            Missing,
        ),
        (
            &format!("{container}/image"),
            json!("i:2"),
            format!("{path}.image"),
            Other,
        ),
        (
            &format!("{container}/args/1"),
            json!("--c"),
            format!("{path}.args[1]"),
            Other,
        ),
        (
            &format!("{container}/args/-"),
            json!("--c"),
            format!("{path}.args"),
            Other,
        ),
        (
            &format!("{container}/env/0"),
            json!({"name": "X", "value": "2"}),
            format!("{path}.env[name=X].value"),
            Other,
        ),
        (
            &format!("{container}/resources/limits/cpu"),
            json!("501m"),
            format!("{path}.resources.limits.cpu"),
            Other,
        ),
        (container, json!({"name": "other"}), path.to_owned(), Missing),
    ] {
        assert_eq!(after("live", pointer, value), Some((expected, kind)), "{pointer}");
    }
}

#[test]
fn what_is_sent_for_the_first_time_is_found() {
    let container = "/spec/template/spec/containers";
    for (pointer, value, expected) in [
        ("/metadata/annotations", json!({"mine": "1"}), "metadata.annotations"),
        (
            &format!("{container}/-"),
            json!({"name": "second"}),
            "spec.template.spec.containers",
        ),
        (
            &format!("{container}/0/ports/-"),
            json!({"containerPort": 81}),
            "spec.template.spec.containers[name=main].ports",
        ),
    ] {
        assert_eq!(
            after("desired", pointer, value),
            Some((expected.to_owned(), DifferenceKind::Missing)),
            "{pointer}"
        );
    }
}

#[test]
fn what_is_no_longer_sent_is_found() {
    let container = "/spec/template/spec/containers/0";
    let path = "spec.template.spec.containers[name=main]";
    for (pointer, value, expected) in [
        ("/spec/replicas", json!(null), "spec.replicas".to_owned()),
        (
            "/metadata/ownerReferences",
            json!([]),
            "metadata.ownerReferences[uid=u1]".to_owned(),
        ),
        (&format!("{container}/env"), json!([]), format!("{path}.env[name=X]")),
        (
            &format!("{container}/resources"),
            json!(null),
            format!("{path}.resources"),
        ),
        (
            &format!("{container}/resources/limits"),
            json!({"cpu": "0.5"}),
            format!("{path}.resources.limits.memory"),
        ),
    ] {
        assert_eq!(
            after("desired", pointer, value),
            Some((expected, DifferenceKind::NoLongerSent)),
            "{pointer}"
        );
    }
}

#[test]
fn what_is_no_longer_sent_and_already_gone_is_no_difference() {
    let (mut desired, mut live) = (desired(), live());
    for object in [&mut desired, &mut live] {
        object["spec"].as_object_mut().unwrap().remove("replicas");
    }
    assert_eq!(first_difference(&desired, &live, MANAGER), None);
}

#[test]
fn an_object_never_applied_by_us_differs() {
    let not_ours = Some(Difference {
        path: String::new(),
        kind: DifferenceKind::NotOurs,
    });
    assert!(first_difference(&desired(), &live(), "another").is_some());
    let mut wiped = live();
    wiped["metadata"].as_object_mut().unwrap().remove("managedFields");
    assert!(first_difference(&desired(), &wiped, MANAGER).is_some());
    let small = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    assert_eq!(first_difference(&small, &small, MANAGER), not_ours);
    // The API server keeps no entry for a manager that owns nothing: this must not be sent for ever.
    let bare = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "ns"}});
    assert_eq!(first_difference(&bare, &bare, MANAGER), None);
}

#[test]
fn a_map_that_is_replaced_as_a_whole_and_was_taken_over_differs() {
    let desired = json!({"spec": {"selector": {"a": "1"}, "type": "ClusterIP"}});
    let live = |fields: Value| {
        json!({
            "metadata": {"managedFields": [{"manager": "ours", "operation": "Apply", "fieldsV1": {"f:spec": fields}}]},
            "spec": {"selector": {"a": "1", "b": "2"}, "type": "ClusterIP"},
        })
    };
    let taken = first_difference(&desired, &live(json!({"f:type": {}})), MANAGER);
    assert_eq!(
        taken,
        Some(Difference {
            path: "spec.selector".to_owned(),
            kind: DifferenceKind::NotOurs
        })
    );
    // Still ours: `b` can only be a default that the server filled in.
    assert_eq!(
        first_difference(&desired, &live(json!({"f:type": {}, "f:selector": {}})), MANAGER),
        None
    );
}

#[test]
fn sets_are_compared_without_order() {
    let live = json!({
        "metadata": {
            "finalizers": ["theirs", "b", "a"],
            "managedFields": [{"manager": "ours", "operation": "Apply",
                "fieldsV1": {"f:metadata": {"f:finalizers": {"v:\"a\"": {}, "v:\"b\"": {}}}}}],
        },
    });
    let finalizers = |items: &[&str]| json!({"metadata": {"finalizers": items}});
    let kind = |items| first_difference(&finalizers(items), &live, MANAGER).map(|difference| difference.kind);
    assert_eq!(kind(&["a", "b"]), None);
    assert_eq!(kind(&["a"]), Some(DifferenceKind::NoLongerSent));
    assert_eq!(kind(&["a", "b", "c"]), Some(DifferenceKind::Missing));
}

#[test]
fn odd_objects_do_not_panic() {
    for live in [
        json!(null),
        json!([]),
        json!({"metadata": 1, "spec": []}),
        json!({"metadata": {"managedFields": [1, {}]}}),
    ] {
        assert!(first_difference(&desired(), &live, MANAGER).is_some(), "{live}");
    }
}
