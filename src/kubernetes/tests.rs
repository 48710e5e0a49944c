//! Applies and deletes against a client that answers from a script.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use http::{Request, Response};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, client::Body};
use serde_json::{Value, json};

use super::*;

/// Method, path with query, and body of a request.
type Sent = (String, String, Value);

/// An Api whose requests are answered with `answers`, in order, and are written down.
fn api(answers: &[(u16, Value)]) -> (Api<ConfigMap>, Arc<Mutex<Vec<Sent>>>) {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let (written, answers) = (sent.clone(), Arc::new(Mutex::new(VecDeque::from(answers.to_vec()))));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (written, answers) = (written.clone(), answers.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body = if body.is_empty() {
                Value::Null
            } else {
                serde_json::from_slice(&body).unwrap()
            };
            written
                .lock()
                .unwrap()
                .push((head.method.to_string(), head.uri.to_string(), body));
            let (status, answer) = answers
                .lock()
                .unwrap()
                .pop_front()
                .expect("a request that was not foreseen");
            Ok::<_, tower::BoxError>(
                Response::builder()
                    .status(status)
                    .body(Body::from(answer.to_string().into_bytes()))
                    .unwrap(),
            )
        }
    });
    (Api::namespaced(Client::new(service, "ns"), "ns"), sent)
}

fn status(code: u16, reason: &str) -> (u16, Value) {
    (
        code,
        json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason}),
    )
}

fn desired() -> ConfigMap {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"},
    }))
    .unwrap()
}

/// The object as it is after an apply of `desired` with this value of `k`.
fn live(value: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a", "namespace": "ns", "uid": uid, "resourceVersion": "1",
            "managedFields": [{
                "manager": "orchestratord.materialize.cloud", "operation": "Apply", "apiVersion": "v1",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:k": {}}},
            }],
        },
        "data": {"k": value},
    })
}

const PATH: &str = "/api/v1/namespaces/ns/configmaps/a";

#[tokio::test]
async fn nothing_is_sent_when_nothing_would_change() {
    let (api, sent) = api(&[(200, live("v", "u"))]);
    let applied = apply(&api, &desired()).await.unwrap();
    assert!(matches!(applied, Applied::Unchanged(_)) && !applied.was_sent());
    assert_eq!(
        *sent.lock().unwrap(),
        [("GET".to_owned(), PATH.to_owned(), Value::Null)]
    );

    let (api, sent) = self::api(&[]);
    let known = serde_json::from_value(live("v", "u")).unwrap();
    assert!(!apply_over(&api, &desired(), Some(known)).await.unwrap().was_sent());
    assert_eq!(
        *sent.lock().unwrap(),
        [],
        "with the live object at hand there is no read either"
    );
}

#[tokio::test]
async fn a_difference_is_applied_with_force_and_named() {
    let (api, sent) = api(&[(200, live("other", "u")), (200, live("v", "u"))]);
    let applied = apply(&api, &desired()).await.unwrap();
    let Applied::Changed { object, difference } = applied else {
        panic!("{applied:?}")
    };
    assert_eq!(difference.to_string(), "data.k has another value");
    assert_eq!(object.data.unwrap()["k"], "v");
    let (method, path, body) = sent.lock().unwrap().pop().unwrap();
    assert_eq!(method, "PATCH");
    assert_eq!(
        path,
        format!("{PATH}?&force=true&fieldManager=orchestratord.materialize.cloud")
    );
    assert_eq!(
        body,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}})
    );
}

#[tokio::test]
async fn what_is_missing_is_created() {
    let (api, sent) = api(&[status(404, "NotFound"), (201, live("v", "u"))]);
    assert!(matches!(apply(&api, &desired()).await.unwrap(), Applied::Created(_)));
    assert_eq!(sent.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn errors_name_the_object() {
    let (api, _) = api(&[status(404, "NotFound"), status(403, "Forbidden")]);
    let error = apply(&api, &desired()).await.unwrap_err();
    assert_eq!(error.to_string(), "can't apply ConfigMap ns/a");
    assert_eq!(error.status().map(|status| status.code), Some(403));
    let unnamed = apply(&self::api(&[]).0, &ConfigMap::default()).await.unwrap_err();
    assert_eq!(unnamed.to_string(), "can't apply a ConfigMap without a name");
}

#[tokio::test]
async fn a_delete_is_in_the_foreground_and_of_one_uid() {
    let (api, sent) = api(&[(200, live("v", "u"))]);
    assert_eq!(delete_foreground(&api, "a", "u").await.unwrap(), Deletion::Requested);
    let (method, path, body) = sent.lock().unwrap().pop().unwrap();
    assert_eq!((method.as_str(), path.trim_end_matches('?')), ("DELETE", PATH));
    assert_eq!(
        body,
        json!({"propagationPolicy": "Foreground", "preconditions": {"uid": "u"}})
    );
}

#[tokio::test]
async fn what_is_gone_or_another_object_needs_no_delete() {
    for answers in [
        vec![status(404, "NotFound")],
        vec![status(409, "Conflict"), status(404, "NotFound")],
        vec![status(409, "Conflict"), (200, live("v", "another"))],
    ] {
        let (api, _) = api(&answers);
        assert_eq!(
            delete_foreground(&api, "a", "u").await.unwrap(),
            Deletion::Gone,
            "{answers:?}"
        );
    }
    let (api, _) = api(&[status(409, "Conflict"), (200, live("v", "u"))]);
    let error = delete_foreground(&api, "a", "u").await.unwrap_err();
    assert_eq!(error.to_string(), "can't delete ConfigMap ns/a");
}

#[test]
fn passing_reasons_are_told_from_refusals() {
    let api_error = |code: u16| kube::Error::Api(Box::new(serde_json::from_value(status(code, "reason").1).unwrap()));
    for (code, transient) in [
        (400, false),
        (401, true),
        (403, true),
        (404, false),
        (409, true),
        (422, false),
        (429, true),
        (500, true),
        (503, true),
    ] {
        assert_eq!(retry::is_transient(&api_error(code)), transient, "{code}");
    }
    assert!(retry::is_transient(&kube::Error::Service("connection refused".into())));
}
