//! Properties over generated objects.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Map;

use super::*;

/// A spec's field: absent, null, or one of a few values.
fn field(values: Vec<Json>) -> impl Strategy<Value = Option<Json>> {
    prop_oneof![Just(None), Just(Some(Json::Null)), select(values).prop_map(Some)]
}

fn fields(table: Vec<(&'static str, Vec<Json>)>) -> impl Strategy<Value = Map<String, Json>> {
    let (names, values): (Vec<_>, Vec<_>) = table.into_iter().unzip();
    values
        .into_iter()
        .map(field)
        .collect::<Vec<_>>()
        .prop_map(move |values| {
            let pairs = names.iter().zip(values);
            pairs
                .filter_map(|(name, value)| Some(((*name).to_owned(), value?)))
                .collect()
        })
}

/// The optional fields that both versions have.
fn shared_fields() -> impl Strategy<Value = Map<String, Json>> {
    let certificate = json!({"dnsNames": ["a"], "issuerRef": {"name": "i"}, "privateKeySize": 384});
    let resources = json!({"limits": {"memory": "1Gi"}, "requests": {"cpu": 1, "memory": "1Gi"}});
    fields(vec![
        ("environmentdExtraArgs", vec![json!([]), json!(["--a", "--b"])]),
        (
            "environmentdExtraEnv",
            vec![json!([{"name": "A", "value": "x"}, {"name": "B", "value": null}])],
        ),
        ("environmentdConnectionRoleArn", vec![json!("arn")]),
        ("environmentdResourceRequirements", vec![json!({}), resources.clone()]),
        (
            "environmentdScratchVolumeStorageRequirement",
            vec![json!("5Gi"), json!(4096)],
        ),
        ("balancerdResourceRequirements", vec![resources.clone()]),
        ("consoleResourceRequirements", vec![resources]),
        ("balancerdReplicas", vec![json!(0), json!(3)]),
        ("consoleReplicas", vec![json!(1)]),
        ("serviceAccountName", vec![json!("sa")]),
        (
            "serviceAccountAnnotations",
            vec![json!({}), json!({"a": "b"}), json!({"eks.amazonaws.com/role-arn": "s"})],
        ),
        ("serviceAccountLabels", vec![json!({"a": "b"})]),
        ("podAnnotations", vec![json!({"a": "b"})]),
        ("podLabels", vec![json!({"a": "b", "c": "d"})]),
        ("forceRollout", vec![json!(ID)]),
        ("rolloutStrategy", vec![json!("ManuallyPromote")]),
        ("rolloutRequestTimeout", vec![json!("90m"), json!("nonsense")]),
        ("authenticatorKind", vec![json!("Password")]),
        ("enableRbac", vec![json!(true)]),
        ("environmentId", vec![json!(ID)]),
        ("systemParameterConfigmapName", vec![json!("p")]),
        ("balancerdExternalCertificateSpec", vec![json!({}), certificate.clone()]),
        ("consoleExternalCertificateSpec", vec![certificate.clone()]),
        ("internalCertificateSpec", vec![certificate]),
        ("balancerdConfigmapName", vec![json!("c")]),
        ("ofANewerVersion", vec![json!({"a": [1, 2.5]})]),
    ])
}

fn alpha_fields() -> impl Strategy<Value = Map<String, Json>> {
    fields(vec![
        ("requestRollout", vec![json!(ID), json!(OTHER_ID)]),
        ("inPlaceRollout", vec![json!(true)]),
        ("environmentdIamRoleArn", vec![json!("arn")]),
        ("forcePromote", vec![json!(""), json!(NIL), json!(ID)]),
    ])
}

fn shared_status() -> impl Strategy<Value = Map<String, Json>> {
    let reasons = [
        "Applying",
        "ReadyToPromote",
        "Promoting",
        "Applied",
        "WaitingForApproval",
        "FailedDeploy",
    ];
    let conditions = reasons.map(|reason| json!([condition(reason)])).to_vec();
    (
        fields(vec![
            ("lastCompletedRolloutEnvironmentdImageRef", vec![json!("i")]),
            ("lastCompletedRolloutHash", vec![json!(MINIMAL_HASH)]),
            ("rolloutStartedAt", vec![json!("2026-01-01T00:00:00Z")]),
            ("ofANewerVersion", vec![json!("x")]),
        ]),
        select(conditions),
    )
        .prop_map(|(mut status, conditions)| {
            status.insert("resourceId".to_owned(), json!("abcdefghij"));
            status.insert("activeGeneration".to_owned(), json!(3));
            status.insert("conditions".to_owned(), conditions);
            status
        })
}

fn complete(version: &'static str, spec: Vec<Map<String, Json>>, status: Option<Map<String, Json>>) -> Json {
    let mut object = object(version, minimal());
    let target = object["spec"].as_object_mut().expect("an object");
    target.extend(spec.into_iter().flatten());
    if let Some(status) = status {
        object["status"] = Json::Object(status);
    }
    object
}

/// Complete objects at v1alpha1 with a status.
fn alpha_objects() -> impl Strategy<Value = Json> {
    (
        shared_fields(),
        alpha_fields(),
        shared_status(),
        select(vec![NIL, ID]),
        select(vec!["", "r"]),
    )
        .prop_map(|(shared, alpha, mut status, completed, hash)| {
            status.insert("lastCompletedRolloutRequest".to_owned(), json!(completed));
            status.insert("resourcesHash".to_owned(), json!(hash));
            complete(ALPHA, vec![shared, alpha], Some(status))
        })
}

/// Complete objects at v1 as a client may write them first: without a status.
fn v1_objects() -> impl Strategy<Value = Json> {
    shared_fields().prop_map(|shared| complete(V1, vec![shared], None))
}

/// What is left of a spec at v1alpha1 after a way through v1.
fn without_what_v1_lacks(object: &Json) -> Json {
    let mut object = object.clone();
    let spec = object["spec"].as_object_mut().expect("an object");
    spec.remove("inPlaceRollout");
    if let Some(Json::String(role)) = spec.remove("environmentdIamRoleArn") {
        let annotations = spec.entry("serviceAccountAnnotations").or_insert(Json::Null);
        if annotations.is_null() {
            *annotations = json!({});
        }
        let annotations = annotations.as_object_mut().expect("generated as one");
        annotations.entry("eks.amazonaws.com/role-arn").or_insert(json!(role));
    }
    if spec
        .get("forcePromote")
        .is_some_and(|value| *value == json!("") || *value == json!(NIL))
    {
        spec.remove("forcePromote");
    }
    // An absent or null request is the nil UUID.
    let request = spec.entry("requestRollout").or_insert(Json::Null);
    if request.is_null() {
        *request = json!(NIL);
    }
    object
}

/// A subset of the keys of spec and status, without metadata: what one field manager owns.
fn subset(object: &Json, keep: &[bool]) -> Json {
    let mut keep = keep.iter().copied().cycle();
    let mut part = json!({"apiVersion": object["apiVersion"], "kind": "Materialize"});
    for key in ["spec", "status"] {
        if let Some(fields) = object[key].as_object() {
            let kept: Map<_, _> = fields
                .clone()
                .into_iter()
                .filter(|_| keep.next() == Some(true))
                .collect();
            part[key] = Json::Object(kept);
        }
    }
    part
}

fn keys(value: &Json) -> Vec<&str> {
    value
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .collect()
}

/// JSON of any shape that has the keys which conversion looks at in all the wrong places.
fn any_json() -> impl Strategy<Value = Json> {
    let keys = [
        "apiVersion",
        "metadata",
        "name",
        "annotations",
        "materialize.cloud/force-rollout",
        "spec",
        "status",
        "conditions",
        "reason",
        "requestRollout",
        "forcePromote",
        "environmentdIamRoleArn",
        "serviceAccountAnnotations",
        "environmentdImageRef",
        "backendSecretName",
        "resourceId",
        "specRolloutHash",
        "x",
    ];
    let leaf = prop_oneof![
        select(vec![
            Json::Null,
            json!(true),
            json!(-1),
            json!(1.5e300),
            json!([]),
            json!({})
        ]),
        select(vec![ALPHA, V1, "", NIL, ID, "Promoting", "v2"]).prop_map(Json::from),
    ];
    let value = leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            proptest::collection::btree_map(select(keys.to_vec()).prop_map(str::to_owned), inner, 0..6)
                .prop_map(|entries| Json::Object(entries.into_iter().collect())),
        ]
    });
    (value, any::<bool>(), select(vec![ALPHA, V1])).prop_map(|(mut value, versioned, version)| {
        if versioned && let Some(object) = value.as_object_mut() {
            object.insert("apiVersion".to_owned(), json!(version));
        }
        value
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn v1alpha1_survives_a_way_through_v1(stored in alpha_objects()) {
        let mut expected = without_what_v1_lacks(&stored);
        let at_v1 = to_v1(&stored);
        // Null at v1alpha1, and what was derived for v1: both come back as the completed hash.
        match at_v1["status"].get("lastCompletedRolloutHash") {
            Some(hash) => expected["status"]["lastCompletedRolloutHash"] = hash.clone(),
            None => drop(expected["status"].as_object_mut().expect("an object").remove("lastCompletedRolloutHash")),
        }
        prop_assert_eq!(to_v1alpha1(&at_v1), expected);
    }

    #[test]
    fn v1_survives_a_way_through_v1alpha1(written in v1_objects()) {
        prop_assert_eq!(to_v1(&to_v1alpha1(&written)), written);
    }

    #[test]
    fn a_read_at_v1_survives_a_way_through_v1alpha1(stored in alpha_objects()) {
        let read = to_v1(&stored);
        prop_assert_eq!(to_v1(&to_v1alpha1(&read)), read);
    }

    #[test]
    fn a_subset_at_v1_keeps_exactly_its_keys(stored in alpha_objects(), keep in proptest::collection::vec(any::<bool>(), 7)) {
        let part = subset(&to_v1(&stored), &keep);
        let output = to_v1alpha1(&part);
        prop_assert_eq!(&output["spec"], &part["spec"]);
        let only_v1 = ["requestedRolloutHash", "requestRollout", "specRolloutHash"];
        let expected: Vec<_> = keys(&part["status"]).into_iter().filter(|key| !only_v1.contains(key)).collect();
        prop_assert_eq!(keys(&output["status"]), expected);
    }

    #[test]
    fn a_subset_at_v1alpha1_keeps_exactly_its_keys(stored in alpha_objects(), keep in proptest::collection::vec(any::<bool>(), 7)) {
        let part = subset(&stored, &keep);
        let output = to_v1(&part);
        let mut expected = without_what_v1_lacks(&part);
        expected["spec"].as_object_mut().expect("an object").remove("requestRollout");
        prop_assert_eq!(&output["spec"], &expected["spec"]);
        prop_assert_eq!(&output["status"], &part["status"]);
    }

    #[test]
    fn any_json_is_converted_or_refused(input in any_json()) {
        for desired in [ApiVersion::V1, ApiVersion::V1alpha1] {
            let first = try_convert(&input.to_string(), desired);
            if let Ok(output) = &first {
                let output: Json = serde_json::from_str(output).expect("the output is JSON");
                prop_assert_eq!(&output["apiVersion"], &json!(desired.as_str()));
            }
            prop_assert_eq!(first, try_convert(&input.to_string(), desired), "same input, same output");
        }
    }
}

proptest! {
    // Each case is two hundred conversions.
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_hundred_round_trips_add_nothing(stored in alpha_objects()) {
        let first = to_v1alpha1(&to_v1(&stored)).to_string();
        let mut text = first.clone();
        for _ in 0..100 {
            text = convert_text(&convert_text(&text, ApiVersion::V1), ApiVersion::V1alpha1);
        }
        prop_assert_eq!(text.len(), first.len());
        let last: Json = serde_json::from_str(&text).expect("JSON");
        prop_assert_eq!(last.to_string(), first);
    }
}
