//! The tables of docs/reference/materialize-resource.md, "Conversion", by example and as properties.

use serde_json::{Value as Json, json};

use super::*;

mod properties;

const ALPHA: &str = "materialize.cloud/v1alpha1";
const V1: &str = "materialize.cloud/v1";
const ID: &str = "11111111-1111-4111-8111-111111111111";
const OTHER_ID: &str = "22222222-2222-4222-8222-222222222222";
const NIL: &str = "00000000-0000-0000-0000-000000000000";
/// Vectors of the rollout hash's own tests.
const MINIMAL_HASH: &str = "edcf5ca64571442a2148e2579a1c597991f2a75c1040eb1fb761a3018b48ef4d";
const MINIMAL_REQUEST: &str = "00126004-e198-53b3-9929-336490891138";

fn try_convert(input: &str, desired: ApiVersion) -> Result<String, ConversionError> {
    let raw: &RawValue = serde_json::from_str(input).expect("the input is JSON");
    let converted = convert(raw, desired)?;
    Ok(serde_json::to_string(&converted).expect("converted objects serialise"))
}

fn convert_text(input: &str, desired: ApiVersion) -> String {
    try_convert(input, desired).expect("the input can be converted")
}

fn to_v1(input: &Json) -> Json {
    serde_json::from_str(&convert_text(&input.to_string(), ApiVersion::V1)).expect("the output is JSON")
}

fn to_v1alpha1(input: &Json) -> Json {
    serde_json::from_str(&convert_text(&input.to_string(), ApiVersion::V1alpha1)).expect("the output is JSON")
}

#[expect(clippy::needless_pass_by_value, reason = "callers write the value in place")]
fn object(version: &str, spec: Json) -> Json {
    let metadata = json!({"name": "a", "namespace": "ns", "uid": "u"});
    json!({"apiVersion": version, "kind": "Materialize", "metadata": metadata, "spec": spec})
}

fn minimal() -> Json {
    json!({"environmentdImageRef": "materialize/environmentd:v26.1.0", "backendSecretName": "backend"})
}

fn condition(reason: &str) -> Json {
    json!({"type": "UpToDate", "status": "Unknown", "reason": reason, "message": "m", "observedGeneration": 3,
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// A complete object at v1alpha1 whose spec hashes to [`MINIMAL_HASH`].
fn alpha(request: &str, completed: &str, reason: &str) -> Json {
    let mut object = object(ALPHA, minimal());
    object["spec"]["requestRollout"] = json!(request);
    object["status"] = json!({"resourceId": "abcdefghij", "activeGeneration": 3, "lastCompletedRolloutRequest": completed,
        "resourcesHash": "r", "lastCompletedRolloutEnvironmentdImageRef": "i", "conditions": [condition(reason)]});
    object
}

#[test]
fn an_object_of_the_desired_version_is_returned_as_it_was_written() {
    for (version, desired) in [(ALPHA, ApiVersion::V1alpha1), (V1, ApiVersion::V1)] {
        let text = format!(r#"{{ "apiVersion" : "{version}", "x": 1.50, "spec": 7 }}"#);
        assert_eq!(convert_text(&text, desired), text);
    }
}

#[test]
fn partial_objects_gain_nothing() {
    for (spec, status) in [
        (json!({}), json!({})),
        (json!({"balancerdReplicas": 2}), json!({"conditions": []})),
        (
            json!({"environmentdImageRef": "i"}),
            json!({"resourceId": "r", "activeGeneration": 1}),
        ),
        (
            json!({"podLabels": null, "serviceAccountAnnotations": null}),
            json!({"lastCompletedRolloutHash": null}),
        ),
    ] {
        for (from, to, convert) in [(ALPHA, V1, to_v1 as fn(&Json) -> Json), (V1, ALPHA, to_v1alpha1)] {
            let mut input = object(from, spec.clone());
            input["status"] = status.clone();
            let mut expected = input.clone();
            expected["apiVersion"] = json!(to);
            assert_eq!(convert(&input), expected);
        }
    }
}

#[test]
fn a_manager_that_owns_just_the_required_fields_gains_nothing() {
    let mut input = json!({"apiVersion": V1, "kind": "Materialize", "spec": minimal()});
    for metadata in [
        None,
        Some(json!({})),
        Some(json!({"annotations": {"a": "b"}})),
        Some(Json::Null),
    ] {
        if let Some(metadata) = metadata {
            input["metadata"] = metadata;
        }
        let mut expected = input.clone();
        expected["apiVersion"] = json!(ALPHA);
        assert_eq!(to_v1alpha1(&input), expected);
    }
}

#[test]
fn objects_without_spec_or_status_keep_none() {
    let input = json!({"apiVersion": ALPHA, "metadata": {"name": "a"}});
    assert_eq!(to_v1(&input), json!({"apiVersion": V1, "metadata": {"name": "a"}}));
    let input = json!({"apiVersion": V1, "spec": null, "status": null});
    assert_eq!(
        to_v1alpha1(&input),
        json!({"apiVersion": ALPHA, "spec": null, "status": null})
    );
}

#[test]
fn untouched_values_are_carried_byte_for_byte() {
    let values =
        r#"{"a":1.50,"b":123456789012345678901234567890,"c":1e400,"d":-0.0,"e":"\u00e9\/","f":[ 1 , 2 ],"a":2}"#;
    for (from, to) in [
        (ApiVersion::V1alpha1, ApiVersion::V1),
        (ApiVersion::V1, ApiVersion::V1alpha1),
    ] {
        let text = |version: ApiVersion| {
            let version = version.as_str();
            format!(
                r#"{{"apiVersion":"{version}","kind":"Materialize","metadata":{values},"k\u0065y":{values},"spec":{values},"status":{values}}}"#
            )
        };
        // Only an escape in a key is written in its plain form.
        let expected = text(to).replace(r"k\u0065y", "key");
        assert_eq!(convert_text(&text(from), to), expected);
    }
}

#[test]
fn what_v1_does_not_have_is_dropped() {
    let input = object(
        ALPHA,
        json!({"requestRollout": ID, "inPlaceRollout": true, "podLabels": {"a": "b"}}),
    );
    assert_eq!(to_v1(&input)["spec"], json!({"podLabels": {"a": "b"}}));
}

#[test]
fn force_promote_that_promotes_nothing_is_dropped() {
    for (given, expected) in [
        (json!(""), None),
        (json!(NIL), None),
        (json!(ID), Some(json!(ID))),
        (json!("x"), Some(json!("x"))),
        (Json::Null, Some(Json::Null)),
        (json!(7), Some(json!(7))),
    ] {
        let output = to_v1(&object(ALPHA, json!({"forcePromote": given})));
        assert_eq!(output["spec"].get("forcePromote"), expected.as_ref(), "{given}");
        let back = to_v1alpha1(&object(V1, json!({"forcePromote": given})));
        assert_eq!(back["spec"]["forcePromote"], given, "at v1 it is copied as it is");
    }
}

#[test]
fn the_deprecated_role_becomes_an_annotation() {
    const KEY: &str = "eks.amazonaws.com/role-arn";
    for (spec, expected) in [
        (
            json!({"environmentdIamRoleArn": "r"}),
            json!({"serviceAccountAnnotations": {KEY: "r"}}),
        ),
        (
            json!({"environmentdIamRoleArn": "r", "serviceAccountAnnotations": null}),
            json!({"serviceAccountAnnotations": {KEY: "r"}}),
        ),
        (
            json!({"environmentdIamRoleArn": "r", "serviceAccountAnnotations": {"a": "b"}}),
            json!({"serviceAccountAnnotations": {"a": "b", KEY: "r"}}),
        ),
        (
            json!({"environmentdIamRoleArn": "r", "serviceAccountAnnotations": {KEY: "s"}}),
            json!({"serviceAccountAnnotations": {KEY: "s"}}),
        ),
        (
            json!({"environmentdIamRoleArn": "r", "serviceAccountAnnotations": 7}),
            json!({"serviceAccountAnnotations": 7}),
        ),
        (json!({"environmentdIamRoleArn": null}), json!({})),
    ] {
        assert_eq!(to_v1(&object(ALPHA, spec.clone()))["spec"], expected, "{spec}");
    }
}

#[test]
fn the_status_at_v1_says_what_is_requested_and_what_is_completed() {
    // request, completed request, stored hash, reason, expected completed and requested hash
    let hash = Some(MINIMAL_HASH);
    for (request, completed, stored, reason, expected_completed, expected_requested) in [
        (ID, ID, None, "Applied", hash, hash),
        (ID, OTHER_ID, None, "Applying", None, hash),
        (NIL, NIL, None, "Applied", None, hash),
        (ID, ID, Some("s"), "Applied", Some("s"), hash),
        (ID, OTHER_ID, Some("s"), "Applying", Some("s"), hash),
        (ID, OTHER_ID, None, "Promoting", None, None),
        (ID, ID, None, "Promoting", hash, None),
    ] {
        let mut input = alpha(request, completed, reason);
        input["status"]["lastCompletedRolloutHash"] = json!(stored);
        let status = &to_v1(&input)["status"];
        let case = format!("{request} {completed} {stored:?} {reason}");
        assert_eq!(
            status.get("lastCompletedRolloutHash"),
            expected_completed.map(|hash| json!(hash)).as_ref(),
            "{case}"
        );
        assert_eq!(
            status.get("requestedRolloutHash"),
            expected_requested.map(|hash| json!(hash)).as_ref(),
            "{case}"
        );
        assert_eq!(status["requestRollout"], json!(request), "{case}");
        assert_eq!(status["specRolloutHash"], json!(MINIMAL_HASH), "{case}");
        assert_eq!(status["lastCompletedRolloutRequest"], json!(completed), "{case}");
        assert_eq!(status["resourcesHash"], json!("r"), "{case}");
    }
}

#[test]
fn a_new_object_at_v1_gets_a_request_of_its_own() {
    let output = to_v1alpha1(&object(V1, minimal()));
    let mut expected = object(ALPHA, minimal());
    expected["spec"]["requestRollout"] = json!(MINIMAL_REQUEST);
    assert_eq!(output, expected);
}

#[test]
fn the_annotation_changes_the_request() {
    let mut input = object(V1, minimal());
    input["metadata"]["annotations"] = json!({"materialize.cloud/force-rollout": "again", "other": "x"});
    // UUIDv5 of the vector "minimal followed by again".
    assert_eq!(
        to_v1alpha1(&input)["spec"]["requestRollout"],
        json!("f51a7352-b1f4-5354-8281-7bc2682fd4f4")
    );
}

#[test]
fn a_status_without_what_v1alpha1_requires_gets_it() {
    for (completed, expected) in [(json!(MINIMAL_HASH), MINIMAL_REQUEST), (Json::Null, NIL)] {
        let mut input = object(V1, minimal());
        input["status"] = json!({"resourceId": "r", "activeGeneration": 1, "conditions": [],
            "lastCompletedRolloutHash": completed, "requestedRolloutHash": MINIMAL_HASH});
        assert_eq!(
            to_v1alpha1(&input)["status"],
            json!({"resourceId": "r", "activeGeneration": 1, "conditions": [], "lastCompletedRolloutHash": completed,
                "lastCompletedRolloutRequest": expected, "resourcesHash": ""})
        );
    }
}

#[test]
fn a_write_at_v1_that_changes_nothing_relevant_keeps_the_request() {
    for reason in [
        "Applied",
        "Applying",
        "Promoting",
        "WaitingForApproval",
        "RolloutTimeout",
    ] {
        let stored = alpha(ID, OTHER_ID, reason);
        let mut at_v1 = to_v1(&stored);
        at_v1["metadata"]["labels"] = json!({"a": "b"});
        at_v1["spec"]["balancerdReplicas"] = json!(5);
        at_v1["spec"]["forcePromote"] = json!("x");
        let back = to_v1alpha1(&at_v1);
        assert_eq!(back["spec"]["requestRollout"], json!(ID), "{reason}");
        assert_eq!(back["status"], stored["status"], "{reason}");
    }
}

#[test]
fn a_write_at_v1_that_changes_the_hash_makes_a_new_request() {
    let mut at_v1 = to_v1(&alpha(ID, ID, "Applied"));
    at_v1["spec"]["environmentdImageRef"] = json!("materialize/environmentd:v26.2.0");
    let changed = to_v1alpha1(&at_v1)["spec"]["requestRollout"].clone();
    assert_ne!(changed, json!(ID));
    assert_eq!(
        to_v1alpha1(&at_v1)["spec"]["requestRollout"],
        changed,
        "the same write asks for the same"
    );

    // Back to the old spec, from the object as it was stored in between: the hash's own request.
    let mut reverted = to_v1(&to_v1alpha1(&at_v1));
    reverted["spec"]["environmentdImageRef"] = json!("materialize/environmentd:v26.1.0");
    assert_eq!(to_v1alpha1(&reverted)["spec"]["requestRollout"], json!(MINIMAL_REQUEST));
}

#[test]
fn errors_name_the_object_and_the_path_and_no_value() {
    let named = r#""kind":"Materialize","metadata":{"namespace":"ns","name":"a"}"#;
    for (input, expected) in [
        (format!("{{{named}}}"), "Materialize ns/a: .apiVersion: missing version"),
        (
            format!(r#"{{"apiVersion":7,{named}}}"#),
            "Materialize ns/a: .apiVersion: missing version",
        ),
        (
            format!(r#"{{"apiVersion":"v2",{named}}}"#),
            r#"Materialize ns/a: .apiVersion: unexpected version: "v2"; expected "materialize.cloud/v1alpha1" or "materialize.cloud/v1""#,
        ),
        (
            format!(r#"{{"apiVersion":"{ALPHA}",{named},"spec":"secret"}}"#),
            "Materialize ns/a: .spec: expected an object",
        ),
        (
            format!(r#"{{"apiVersion":"{ALPHA}",{named},"status":[]}}"#),
            "Materialize ns/a: .status: expected an object",
        ),
        ("[]".to_owned(), "object without a name: .: expected an object"),
        ("null".to_owned(), "object without a name: .: expected an object"),
        (
            format!(r#"{{"apiVersion":"{ALPHA}","spec":7}}"#),
            "object without a name: .spec: expected an object",
        ),
    ] {
        let error = try_convert(&input, ApiVersion::V1).expect_err(&input);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn deep_nesting_is_an_error_and_never_a_crash() {
    let nested = |depth: usize| {
        let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"apiVersion":"{ALPHA}","metadata":{{"name":"a"}},"spec":{{"x":{value}}}}}"#)
    };
    // The object and its spec are two levels themselves.
    assert!(try_convert(&nested(DEPTH_LIMIT - 2), ApiVersion::V1).is_ok());
    for depth in [DEPTH_LIMIT - 1, 2_000_000] {
        let error = try_convert(&nested(depth), ApiVersion::V1).expect_err("too deep");
        assert_eq!(error.kind, ConversionErrorKind::TooDeep);
    }
}
