//! Decision L15, sentence by sentence.

use serde_json::{Value, json};

use super::*;

const OLD: &str = "materialize/orchestratord:v26.43.0";
const NEW: &str = "localhost/orchestratord:v0.1.0";

/// A running pod with one container of this image that shows no election.
fn pod(name: &str, image: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "operator", "image": image, "args": ["--region=r"]}]},
        "status": {"phase": "Running"},
    })
}

/// As the chart makes them.
fn elected(name: &str, image: &str) -> Value {
    with(
        pod(name, image),
        "/spec/containers/0/env",
        json!([{
            "name": "ORCHESTRATORD_LEADER_ELECTION_IDENTITY",
            "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
        }]),
    )
}

/// `pod` with `value` at `path`, whose last part may be new.
fn with(mut pod: Value, path: &str, value: Value) -> Value {
    let (parent, key) = path.rsplit_once('/').unwrap();
    pod.pointer_mut(parent).unwrap()[key] = value;
    pod
}

fn with_sidecar(mut pod: Value, image: &str) -> Value {
    let sidecar = json!({"name": "proxy", "image": image});
    pod["spec"]["containers"].as_array_mut().unwrap().push(sidecar);
    pod
}

/// Decides for the replica in the pod `me`.
fn decided(pods: &[Value], shows_election: bool) -> Decision {
    let pods = pods.iter().map(|pod| serde_json::from_value(pod.clone()).unwrap());
    let own = Own {
        names: vec!["me".to_owned(), "host".to_owned()],
        shows_election,
    };
    decide(&Seen::Pods(pods.collect()), &own)
}

/// The names of the pods that are waited for; none: the controllers start without a warning.
fn waits_for(pods: &[Value]) -> Vec<String> {
    match decided(pods, true) {
        Decision::Start => Vec::new(),
        Decision::Wait(predecessors) => predecessors.into_iter().map(|predecessor| predecessor.pod).collect(),
        Decision::StartWithWarning(doubt) => panic!("{doubt}"),
    }
}

#[test]
fn another_image_without_election_is_waited_for_and_named() {
    let waiting = decided(&[pod("old", OLD), elected("me", NEW)], true);
    let old = Predecessor {
        pod: "old".to_owned(),
        image: OLD.to_owned(),
    };
    assert_eq!(waiting, Decision::Wait(vec![old]));
}

#[test]
fn nobody_else_is_waited_for() {
    for (what, other) in [
        ("takes part by the variable", elected("other", OLD)),
        (
            "takes part by the flag and its value in one",
            with(
                pod("other", OLD),
                "/spec/containers/0/args",
                json!(["--leader-election-identity=x"]),
            ),
        ),
        (
            "takes part by the flag with its value behind it",
            with(
                pod("other", OLD),
                "/spec/containers/0/args",
                json!(["--leader-election-identity", "x"]),
            ),
        ),
        (
            "takes part by the flag in its command, behind a shell",
            with(
                pod("other", OLD),
                "/spec/containers/0/command",
                json!([
                    "sh",
                    "-c",
                    "exec orchestratord --leader-election-identity=$POD --region=r"
                ]),
            ),
        ),
        ("another of its containers takes part", {
            let two = with_sidecar(pod("other", OLD), OLD);
            with(two, "/spec/containers/1/args", json!(["--leader-election-identity=x"]))
        }),
        ("runs this image", pod("other", NEW)),
        (
            "runs this image beside a sidecar",
            with_sidecar(pod("other", NEW), "proxy:2"),
        ),
        (
            "has succeeded",
            with(pod("other", OLD), "/status/phase", json!("Succeeded")),
        ),
        (
            "has failed, or was evicted",
            with(pod("other", OLD), "/status/phase", json!("Failed")),
        ),
    ] {
        assert_eq!(waits_for(&[elected("me", NEW), other]), [""; 0], "{what}");
    }
}

#[test]
fn who_has_not_terminated_is_waited_for() {
    for (what, old) in [
        (
            "has not started",
            with(pod("old", OLD), "/status/phase", json!("Pending")),
        ),
        (
            "is on a lost node",
            with(pod("old", OLD), "/status/phase", json!("Unknown")),
        ),
        (
            "was never seen by a kubelet",
            with(pod("old", OLD), "/status", json!({})),
        ),
        (
            "is being deleted",
            with(
                pod("old", OLD),
                "/metadata/deletionTimestamp",
                json!("2026-01-01T00:00:00Z"),
            ),
        ),
    ] {
        assert_eq!(waits_for(&[elected("me", NEW), old]), ["old"], "{what}");
    }
}

#[test]
fn what_only_looks_like_election_does_not_count() {
    for (what, old) in [
        (
            "a longer flag",
            with(
                pod("old", OLD),
                "/spec/containers/0/args",
                json!(["--leader-election-identity-file=x"]),
            ),
        ),
        (
            "a longer variable",
            with(
                pod("old", OLD),
                "/spec/containers/0/env",
                json!([{"name": "ORCHESTRATORD_LEADER_ELECTION_IDENTITY_OLD", "value": "x"}]),
            ),
        ),
        (
            "an init container",
            with(
                pod("old", OLD),
                "/spec/initContainers",
                json!([{"name": "init", "args": ["--leader-election-identity=x"]}]),
            ),
        ),
        ("the same sidecar beside it", with_sidecar(pod("old", OLD), "proxy:1")),
    ] {
        let me = with_sidecar(elected("me", NEW), "proxy:1");
        assert_eq!(waits_for(&[me, old]), ["old"], "{what}");
    }
}

#[test]
fn a_sidecar_of_another_version_makes_no_other_operator() {
    let me = with_sidecar(elected("me", NEW), "proxy:2");
    assert_eq!(waits_for(&[me, with_sidecar(pod("other", NEW), "proxy:1")]), [""; 0]);
}

#[test]
fn all_that_run_are_named() {
    let pods = [
        pod("old-1", OLD),
        elected("me", NEW),
        pod("old-2", OLD),
        elected("new", NEW),
    ];
    assert_eq!(waits_for(&pods), ["old-1", "old-2"]);
}

#[test]
fn this_replica_is_never_its_own_predecessor() {
    assert_eq!(waits_for(&[pod("me", NEW)]), [""; 0]);
    assert_eq!(waits_for(&[pod("host", NEW)]), [""; 0], "found by its host name");
    assert_eq!(
        waits_for(&[pod("me", NEW), pod("old", OLD)]),
        ["old"],
        "whether it shows its own election or not"
    );
}

#[test]
fn without_labels_or_permission_it_starts_and_warns() {
    for (seen, doubt, word) in [
        (
            Seen::WithoutLabels,
            Doubt::NoLabels,
            "--orchestratord-pod-selector-labels",
        ),
        (Seen::Forbidden, Doubt::Forbidden, "list on pods"),
    ] {
        assert!(doubt.to_string().contains(word), "{doubt}");
        assert_eq!(decide(&seen, &Own::default()), Decision::StartWithWarning(doubt));
    }
}

#[test]
fn without_its_own_pod_it_ignores_pods_that_may_be_itself_and_warns() {
    let doubt = Doubt::OwnPodNotFound {
        names: vec!["me".to_owned(), "host".to_owned()],
        ignored: vec!["a".to_owned(), "b".to_owned()],
    };
    for word in ["me or host", "a, b"] {
        assert!(doubt.to_string().contains(word), "{doubt}");
    }
    let pods = [pod("a", OLD), elected("c", NEW), pod("b", NEW)];
    assert_eq!(decided(&pods, false), Decision::StartWithWarning(doubt));
}

#[test]
fn without_its_own_pod_it_waits_for_pods_that_can_not_be_itself() {
    let waiting = decided(&[pod("a", OLD), elected("c", NEW)], true);
    assert!(
        matches!(&waiting, Decision::Wait(predecessors) if predecessors.len() == 1 && predecessors[0].pod == "a"),
        "{waiting:?}"
    );
}

#[test]
fn without_its_own_pod_and_without_suspects_it_starts_and_warns() {
    for pods in [vec![], vec![elected("c", NEW)]] {
        for shows_election in [false, true] {
            let decision = decided(&pods, shows_election);
            assert!(
                matches!(&decision, Decision::StartWithWarning(Doubt::OwnPodNotFound { ignored, .. }) if ignored.is_empty()),
                "{decision:?}"
            );
        }
    }
}
