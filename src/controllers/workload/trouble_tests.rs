#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use super::*;

fn pod(name: &str, status: &Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": name}, "status": status})).unwrap()
}

fn container(state: &Value) -> Value {
    let mut status = json!({
        "name": "balancerd", "image": "registry/balancerd:v1", "imageID": "", "ready": false, "restartCount": 0,
    });
    for (key, value) in state.as_object().unwrap() {
        status[key] = value.clone();
    }
    json!({"containerStatuses": [status]})
}

fn waiting(reason: &str, message: &str) -> Value {
    container(&json!({"state": {"waiting": {"reason": reason, "message": message}}}))
}

fn of(status: &Value) -> Option<String> {
    cause(Evidence {
        deployment: &Deployment::default(),
        missing_secret: None,
        pods: &[pod("mzx-balancerd-6d5f-abcde", status)],
    })
}

#[test]
fn images_that_cannot_be_pulled() {
    let first = "failed to pull and unpack image \"registry/balancerd:v1\": registry/balancerd:v1: not found";
    let later = format!("Back-off pulling image \"registry/balancerd:v1\": ErrImagePull: {first}");
    let expected = Some("the image registry/balancerd:v1 can't be pulled: it was not found".to_owned());
    assert_eq!(of(&waiting("ErrImagePull", first)), expected);
    assert_eq!(
        of(&waiting("ImagePullBackOff", &later)),
        expected,
        "the same in the pause between two attempts"
    );
    for (message, why) in [
        (
            "pull access denied, repository does not exist or may require authorization",
            ": the registry denies access",
        ),
        ("failed to authorize: 401 Unauthorized", ": the registry denies access"),
        (
            "dial tcp: lookup registry: no such host",
            ": the registry can't be reached",
        ),
        ("429 Too Many Requests", ": the registry takes no more requests for now"),
        ("", ""),
    ] {
        let expected = format!("the image registry/balancerd:v1 can't be pulled{why}");
        assert_eq!(of(&waiting("ErrImagePull", message)), Some(expected), "{message}");
    }
    assert_eq!(
        of(&waiting("InvalidImageName", "")),
        Some("registry/balancerd:v1 is no valid name of an image".to_owned())
    );
}

#[test]
fn a_pod_without_a_node() {
    let message = "0/4 nodes are available: 1 node(s) had untolerated taint {team: x}, 3 Insufficient cpu. \
                   preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.";
    let status = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message},
    ]});
    assert_eq!(
        of(&status),
        Some("no node can take a pod: Insufficient cpu, node(s) had untolerated taint {team: x}".to_owned())
    );
}

#[test]
fn a_program_that_ends_is_told_the_same_way_in_every_state() {
    let died = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    let expected = Some("the container balancerd does not keep running: exit code 1".to_owned());
    let back_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting pod a"}});
    assert_eq!(of(&container(&json!({"state": died}))), expected);
    assert_eq!(of(&container(&json!({"state": back_off, "lastState": died}))), expected);
    assert_eq!(
        of(&container(&json!({"state": {"running": {}}, "lastState": died}))),
        expected
    );
    let memory =
        json!({"state": {"running": {}}, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}});
    assert_eq!(
        of(&container(&memory)),
        Some("the container balancerd ran out of memory (OOMKilled)".to_owned())
    );
}

#[test]
fn settings_that_a_container_cannot_start_with() {
    assert_eq!(
        of(&waiting("CreateContainerConfigError", "secret \"a\" not found")),
        Some(
            "the container balancerd can't be started: CreateContainerConfigError (secret \"a\" not found)".to_owned()
        )
    );
}

#[test]
fn a_pod_that_is_starting_is_no_trouble() {
    assert_eq!(of(&waiting("ContainerCreating", "")), None);
    assert_eq!(
        of(&container(&json!({"state": {"running": {}}, "started": false}))),
        None
    );
    assert_eq!(of(&json!({})), None);
}

#[test]
fn a_program_that_runs_and_is_not_ready() {
    assert_eq!(
        of(&container(&json!({"state": {"running": {}}, "started": true}))),
        Some("the container balancerd runs but fails its readiness probe".to_owned())
    );
}

#[test]
fn pods_that_are_over_do_not_count() {
    let mut evicted = waiting("ErrImagePull", "");
    evicted["phase"] = json!("Failed");
    assert_eq!(of(&evicted), None);
}

#[test]
fn of_several_pods_always_the_same_one_speaks() {
    let pods = [
        pod("b", &waiting("ErrImagePull", "")),
        pod("a", &container(&json!({"state": {"running": {}}, "started": true}))),
    ];
    let both = |pods: &[Pod]| {
        cause(Evidence {
            deployment: &Deployment::default(),
            missing_secret: None,
            pods,
        })
    };
    let expected = Some("the image registry/balancerd:v1 can't be pulled".to_owned());
    assert_eq!(both(&pods), expected);
    let [first, second] = pods;
    assert_eq!(both(&[second, first]), expected);
}

#[test]
fn pods_that_are_refused_come_first() {
    let message =
        "pods \"mzx-balancerd-6d5f-abcde\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3";
    let deployment: Deployment = serde_json::from_value(json!({"metadata": {}, "status": {"conditions": [
        {"type": "Available", "status": "False", "message": "no"},
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message},
    ]}}))
    .unwrap();
    let secret = MissingSecret {
        name: "s",
        certificate: "c",
        says: None,
    };
    assert_eq!(
        cause(Evidence {
            deployment: &deployment,
            missing_secret: Some(secret),
            pods: &[]
        }),
        Some("pods can't be created: is forbidden: exceeded quota: small".to_owned())
    );
}

#[test]
fn a_secret_that_is_not_there_yet() {
    let because = |says| {
        let secret = MissingSecret {
            name: "mzx-tls",
            certificate: "mzx-external",
            says,
        };
        let pods = [pod("a", &waiting("ContainerCreating", ""))];
        cause(Evidence {
            deployment: &Deployment::default(),
            missing_secret: Some(secret),
            pods: &pods,
        })
    };
    assert_eq!(
        because(None),
        Some("the Secret mzx-tls does not exist; the Certificate mzx-external is not issued".to_owned())
    );
    assert_eq!(
        because(Some("IssuerNotFound: no such issuer")),
        Some(
            "the Secret mzx-tls does not exist; the Certificate mzx-external is not issued (IssuerNotFound: no such issuer)"
                .to_owned()
        )
    );
}
