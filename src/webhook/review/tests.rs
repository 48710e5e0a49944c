//! The table of answers in `docs/reference/webhook.md`, row by row.

#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use super::*;

const V1ALPHA1: &str = "materialize.cloud/v1alpha1";
const V1: &str = "materialize.cloud/v1";

fn review(desired: &str, objects: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {"uid": "705ab4f5", "desiredAPIVersion": desired, "objects": objects},
    })
}

fn ask(review: &Value) -> (u16, Value, Outcome) {
    let answer = answer(&serde_json::to_vec(review).unwrap());
    assert!(answer.json);
    (
        answer.status.as_u16(),
        serde_json::from_slice(&answer.body).unwrap(),
        answer.outcome,
    )
}

fn failure(uid: &str, result: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": {"uid": uid, "convertedObjects": [], "result": result},
    })
}

#[test]
fn objects_come_back_converted_and_in_their_order() {
    let objects = json!([
        {"apiVersion": V1, "kind": "Materialize", "metadata": {"name": "a"}, "spec": {"forcePromote": "x"}},
        {"apiVersion": V1ALPHA1, "kind": "Materialize", "metadata": {"name": "b"}, "unknown": [1]},
    ]);
    let (status, body, outcome) = ask(&review(V1ALPHA1, &objects));
    assert_eq!(status, 200);
    assert_eq!(body["apiVersion"], "apiextensions.k8s.io/v1");
    assert_eq!(body["kind"], "ConversionReview");
    assert!(body.get("request").is_none());
    let response = &body["response"];
    assert_eq!(
        (&response["uid"], &response["result"]),
        (&json!("705ab4f5"), &json!({"status": "Success"}))
    );
    let names: Vec<_> = response["convertedObjects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| (object["metadata"]["name"].clone(), object["apiVersion"].clone()))
        .collect();
    assert_eq!(names, [(json!("a"), json!(V1ALPHA1)), (json!("b"), json!(V1ALPHA1))]);
    assert_eq!(
        outcome,
        Outcome::Converted {
            objects: 2,
            to: V1ALPHA1
        }
    );
}

#[test]
fn no_objects_are_converted_to_none() {
    let (status, body, _) = ask(&review(V1, &json!([])));
    assert_eq!(
        (status, &body["response"]),
        (
            200,
            &json!({"uid": "705ab4f5", "convertedObjects": [], "result": {"status": "Success"}})
        )
    );
}

#[test]
fn the_reviews_own_version_and_kind_come_back() {
    let mut asked = review(V1, &json!([]));
    asked["apiVersion"] = json!("apiextensions.k8s.io/v1beta1");
    asked["kind"] = json!("Conversion\nReview");
    let (_, body, _) = ask(&asked);
    assert_eq!(
        (&body["apiVersion"], &body["kind"]),
        (&json!("apiextensions.k8s.io/v1beta1"), &json!("Conversion\nReview"))
    );
}

#[test]
fn a_failed_conversion_answers_200_with_the_reason() {
    let good = json!({"apiVersion": V1ALPHA1, "kind": "Materialize", "metadata": {"name": "good"}});
    let cases = [
        (
            json!({"apiVersion": "materialize.cloud/v2", "kind": "Materialize", "metadata": {"namespace": "ns", "name": "bad"}}),
            "Materialize ns/bad: .apiVersion: unexpected version: \"materialize.cloud/v2\"; expected \
             \"materialize.cloud/v1alpha1\" or \"materialize.cloud/v1\"",
        ),
        (
            json!({"kind": "Materialize", "metadata": {"namespace": "ns", "name": "bad"}}),
            "Materialize ns/bad: .apiVersion: missing version",
        ),
        (
            json!({"apiVersion": V1ALPHA1, "kind": "Materialize", "metadata": {"namespace": "ns", "name": "bad"}, "spec": ["secret"]}),
            "Materialize ns/bad: .spec: expected an object",
        ),
        (json!("secret"), "object without a name: .: expected an object"),
    ];
    for (bad, message) in cases {
        let (status, body, outcome) = ask(&review(V1, &json!([good, good, bad])));
        assert_eq!(status, 200, "{message}");
        assert_eq!(
            body,
            failure("705ab4f5", &json!({"status": "Failure", "message": message}))
        );
        assert_eq!(outcome, Outcome::Failed(message.to_owned()));
    }
}

#[test]
fn an_unknown_desired_version_is_named() {
    let (status, body, _) = ask(&review("materialize.cloud/v2", &json!([])));
    let result =
        json!({"status": "Failure", "message": "unexpected version: materialize.cloud/v2", "reason": "BadRequest"});
    assert_eq!((status, body), (200, failure("705ab4f5", &result)));
}

#[test]
fn a_review_without_a_request_is_refused_with_a_review() {
    for request in [json!(null), json!("absent")] {
        let mut asked = json!({"apiVersion": "x/v9", "kind": "Other"});
        if request.is_null() {
            asked["request"] = request;
        }
        let (status, body, outcome) = ask(&asked);
        let result = json!({"status": "Failure", "message": "missing request", "reason": "Invalid"});
        assert_eq!((status, body), (422, failure("", &result)));
        assert_eq!(outcome, Outcome::Refused("missing request".to_owned()));
    }
}

#[test]
fn what_is_no_review_is_refused_as_text_without_its_content() {
    let cases: [(&[u8], u16); 9] = [
        (b"", 400),
        (b"secret", 400),
        (
            b"{\"apiVersion\":\"a\",\"kind\":\"b\",\"request\":{\"uid\":\"secret",
            400,
        ),
        (b"{\"apiVersion\":\"a\",\"kind\":\"b\"} secret", 400),
        (b"\"secret\"", 422),
        (b"{\"kind\":\"secret\"}", 422),
        (b"{\"apiVersion\":\"a\",\"kind\":7}", 422),
        (
            b"{\"apiVersion\":\"a\",\"kind\":\"b\",\"request\":{\"desiredAPIVersion\":\"secret\",\"objects\":[]}}",
            422,
        ),
        (
            b"{\"apiVersion\":\"a\",\"kind\":\"b\",\"request\":{\"uid\":\"u\",\"desiredAPIVersion\":\"secret\"}}",
            422,
        ),
    ];
    for (body, status) in cases {
        let answer = answer(body);
        let (asked, text) = (String::from_utf8_lossy(body), String::from_utf8(answer.body).unwrap());
        assert_eq!(answer.status.as_u16(), status, "{asked}");
        assert!(!answer.json, "{asked}");
        assert!(
            text.starts_with("expected ") && !text.contains("secret"),
            "{asked}: {text}"
        );
        assert!(matches!(answer.outcome, Outcome::Refused(_)), "{asked}");
    }
}

#[test]
fn deep_nesting_and_wide_numbers_pass_through() {
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let object = format!(
        r#"{{"apiVersion":"{V1}","kind":"Materialize","metadata":{{"name":"a"}},"x":{deep},"spec":{{"n":[1e400,9223372036854775808,-0]}}}}"#
    );
    let body = format!(
        r#"{{"apiVersion":"a","kind":"b","request":{{"uid":"u","desiredAPIVersion":"{V1ALPHA1}","objects":[{object}]}}}}"#
    );
    let answer = answer(body.as_bytes());
    let text = String::from_utf8(answer.body).unwrap();
    assert_eq!(answer.status, 200);
    assert!(
        text.contains(&deep) && text.contains("[1e400,9223372036854775808,-0]"),
        "{text}"
    );
}
