#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, vec};
use proptest::prelude::{Strategy, any, prop};
use proptest::{prop_assert, prop_assert_eq, proptest};
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::fixtures::with;
use super::*;

const TAG: &str = "v26.42.0";

fn built(flags: &[&str], spec: &Value, generation: u64) -> GenerationObjects {
    with(TAG, flags, spec, |environment| {
        GenerationObjects::build(environment, generation)
    })
}

fn hash(flags: &[&str], spec: &Value) -> String {
    built(flags, spec, 1).hash
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let spec = json!({
        "podLabels": {"a": "1", "b": "2", "c": "3"},
        "podAnnotations": {"x": "1", "y": "2", "z": "3"},
        "authenticatorKind": "Password",
    });
    let reordered = json!({
        "authenticatorKind": "Password",
        "podAnnotations": {"z": "3", "y": "2", "x": "1"},
        "podLabels": {"c": "3", "b": "2", "a": "1"},
    });
    let flags = ["--environmentd-node-selector=a=1", "--environmentd-node-selector=b=2"];
    let swapped = ["--environmentd-node-selector=b=2", "--environmentd-node-selector=a=1"];
    let first = built(&flags, &spec, 1);
    let second = built(&swapped, &reordered, 1);
    assert_eq!(
        json!(first.stateful_set).to_string(),
        json!(second.stateful_set).to_string()
    );
    assert_eq!(first, second);
    assert_eq!(first.hash.len(), 64);
}

/// A pin, not a specification: if this value moves, an upgrade of the operator shows every environment as waiting
/// for approval. Change it only for a release that is meant to do so.
#[test]
fn the_hash_does_not_move_between_releases() {
    assert_eq!(
        hash(&[], &json!({})),
        "c5df5db57608bc6f0bda17a93917d9232bfb04da93e5411854eb0809b4167b40"
    );
}

#[test]
fn generations_never_have_the_same_hash() {
    assert_ne!(built(&[], &json!({}), 1).hash, built(&[], &json!({}), 2).hash);
}

#[test]
fn what_is_rendered_moves_the_hash() {
    let before = hash(&[], &json!({}));
    for spec in [
        json!({"environmentdExtraArgs": ["--a"]}),
        json!({"forceRollout": "33333333-3333-4333-8333-333333333333"}),
        json!({"authenticatorKind": "Password"}),
        // Differs in its listeners alone.
        json!({"authenticatorKind": "Frontegg"}),
        json!({"enableRbac": true}),
        json!({"podLabels": {"a": "b"}}),
        json!({"serviceAccountName": "own"}),
        json!({"backendSecretName": "other"}),
        json!({"internalCertificateSpec": {"issuerRef": {"name": "ca"}}}),
    ] {
        assert_ne!(hash(&[], &spec), before, "{spec}");
    }
    for flag in [
        "--enable-security-context",
        "--environmentd-http-port=1",
        "--region=other",
    ] {
        assert_ne!(hash(&[flag], &json!({})), before, "{flag}");
    }
}

#[test]
fn what_is_not_rendered_leaves_the_hash_alone() {
    let before = hash(&[], &json!({}));
    for spec in [
        json!({"requestRollout": "33333333-3333-4333-8333-333333333333"}),
        json!({"forcePromote": "x"}),
        json!({"rolloutStrategy": "ManuallyPromote"}),
        json!({"rolloutRequestTimeout": "1h"}),
        json!({"balancerdReplicas": 7, "consoleReplicas": 7}),
        json!({"balancerdConfigmapName": "settings"}),
        json!({"serviceAccountLabels": {"a": "b"}}),
        json!({"internalCertificateSpec": {"dnsNames": ["a"]}}),
    ] {
        assert_eq!(hash(&[], &spec), before, "{spec}");
    }
    assert_eq!(
        hash(&["--network-policies-internal-enabled", "--create-console"], &json!({})),
        before
    );
}

#[test]
fn the_record_stands_outside_the_template_and_the_hash() {
    let objects = built(&[], &json!({}), 4);
    let request = Uuid::from_u128(9);
    let applied = objects.stateful_set_for(request);
    assert_eq!(applied.spec, objects.stateful_set.spec);
    assert_eq!(
        Record::read(&applied.metadata),
        Some(Record {
            request,
            hash: objects.hash.clone(),
            listeners: objects.listeners.data.as_ref().unwrap().get("listeners.json").cloned(),
        })
    );
    let mut metadata = applied.metadata.clone();
    metadata
        .annotations
        .as_mut()
        .unwrap()
        .retain(|key, _| !key.starts_with("orchestratord.materialize.cloud/"));
    assert_eq!(metadata, objects.stateful_set.metadata);
}

#[test]
fn the_force_annotation_joins_field_and_annotation() {
    let force = |annotation: Option<&str>| {
        let spec = json!({"forceRollout": "33333333-3333-4333-8333-333333333333"});
        let mut materialize = super::super::fixtures::materialize(TAG, &spec);
        materialize.metadata.annotations =
            annotation.map(|value| [("materialize.cloud/force-rollout".to_owned(), value.to_owned())].into());
        let config = crate::args::Config::for_tests(&[]);
        let objects = GenerationObjects::build(&Environment::new(&materialize, &config).unwrap(), 1);
        objects.stateful_set.metadata.annotations.unwrap()["materialize.cloud/force"].clone()
    };
    assert_eq!(force(None), "33333333-3333-4333-8333-333333333333");
    assert_eq!(force(Some("now")), "33333333-3333-4333-8333-333333333333/now");
    assert_eq!(force(Some("")), "33333333-3333-4333-8333-333333333333/");
}

#[test]
fn where_the_leader_api_answers() {
    const TLS: &str = r#"--default-certificate-specs={"internal":{"issuerRef":{"name":"ca"}}}"#;
    let host = "mzk3x9q0ab7z-environmentd-4.analytics.svc.cluster.local";
    for (kind, flags, url, secret) in [
        ("None", vec![], format!("http://{host}:6878"), None),
        ("None", vec![TLS], format!("http://{host}:6878"), None),
        ("Frontegg", vec![TLS], format!("http://{host}:6878"), None),
        ("Password", vec![], format!("http://{host}:6876"), Some("backend")),
        ("Password", vec![TLS], format!("https://{host}:6876"), Some("backend")),
        ("Sasl", vec![TLS], format!("https://{host}:6876"), Some("backend")),
        ("Oidc", vec![], format!("http://{host}:6876"), Some("backend")),
    ] {
        let found = built(&flags, &json!({"authenticatorKind": kind}), 4).connection;
        assert_eq!(
            found,
            ConnectionInfo {
                url,
                secret_name: secret.map(str::to_owned)
            },
            "{kind} {flags:?}"
        );
    }
}

/// Names from a small set, so that they collide, and any text.
fn words() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(
        prop::sample::select(vec!["app", "materialize.cloud/app", "a", "b=c", ""]).prop_map(str::to_owned),
        any::<String>(),
        0..4,
    )
}

proptest! {
    /// Whatever users write, building does not panic, gives the same bytes twice, and never names a variable twice,
    /// which the API server would refuse.
    #[test]
    fn any_input_builds_and_is_stable(
        image in any::<String>(),
        labels in words(),
        annotations in words(),
        env in vec((prop::sample::select(vec!["A", "AWS_REGION", "MZ_LICENSE_KEY", ""]), any::<String>()), 0..6),
        args in vec(any::<String>(), 0..3),
        sizes in any::<String>(),
        generation in any::<u64>(),
    ) {
        let env: Vec<_> = env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let spec = json!({
            "environmentdImageRef": image,
            "podLabels": labels,
            "podAnnotations": annotations,
            "environmentdExtraEnv": env,
            "environmentdExtraArgs": args,
        });
        let materialize = super::super::fixtures::materialize(TAG, &spec);
        let mut config = crate::args::Config::for_tests(&[]);
        config.sizing.environmentd_cluster_replica_sizes = Some(sizes);
        let environment = Environment::new(&materialize, &config).unwrap();
        let first = GenerationObjects::build(&environment, generation);
        let second = GenerationObjects::build(&environment.clone(), generation);
        prop_assert_eq!(&first, &second);

        let pod = first.stateful_set.spec.unwrap().template.spec.unwrap();
        let names: Vec<_> = pod.containers[0].env.iter().flatten().map(|variable| &variable.name).collect();
        prop_assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        prop_assert!(first.hash.len() == 64);
    }
}
