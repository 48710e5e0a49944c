//! Against a small API server in memory that knows CRDs only and behaves as the real one for server-side apply by a
//! single manager. The same on a real API server is an end-to-end scenario.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use k8s_openapi::jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::api::labels::ANNOTATION_REGISTRATION;

const MATERIALIZES: &str = "materializes.materialize.cloud";

#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    crds: BTreeMap<String, Value>,
    /// Method and CRD of each request.
    requests: Vec<(Method, String)>,
    /// Query strings of the writes.
    queries: Vec<String>,
    /// Status code of every PATCH, if it is to fail.
    refuse_writes: Option<u16>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let name = parts.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
        let body = body.collect().await.expect("bodies are in memory").to_bytes();
        let mut state = self.0.lock().expect("no test panics while it holds the lock");
        state.requests.push((parts.method.clone(), name.clone()));
        let failure = |code: u16| {
            (
                code,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "no", "reason": if code == 404 { "NotFound" } else { "Test" }}),
            )
        };
        let (code, answer) = match parts.method {
            Method::GET => state
                .crds
                .get(&name)
                .map_or_else(|| failure(404), |crd| (200, crd.clone())),
            Method::PATCH if state.refuse_writes.is_some() => failure(state.refuse_writes.unwrap_or_default()),
            Method::PATCH => {
                state.queries.push(parts.uri.query().unwrap_or_default().to_owned());
                let mut crd: Value = serde_json::from_slice(&body).expect("applied objects are JSON");
                if crd["spec"]["conversion"].is_null() {
                    crd["spec"]["conversion"] = json!({"strategy": "None"});
                }
                crd["spec"]["names"]["listKind"] = json!("FilledInByTheServer");
                crd["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
                state.crds.insert(name, crd.clone());
                (200, crd)
            }
            _ => failure(405),
        };
        Response::builder()
            .status(code)
            .body(Body::from(answer.to_string().into_bytes()))
            .expect("a well-formed response")
    }

    /// The CRDs written since the last call, in alphabetical order.
    fn take_writes(&self) -> Vec<String> {
        let mut state = self.0.lock().expect("no test panics while it holds the lock");
        let mut writes: Vec<_> = std::mem::take(&mut state.requests)
            .into_iter()
            .filter(|(method, _)| *method != Method::GET)
            .map(|(_, name)| name)
            .collect();
        writes.sort();
        writes
    }

    fn crd(&self, name: &str) -> Value {
        self.0.lock().expect("no test panics while it holds the lock").crds[name].clone()
    }

    fn edit(&self, name: &str, edit: impl FnOnce(&mut Value)) {
        edit(
            self.0
                .lock()
                .expect("no test panics while it holds the lock")
                .crds
                .get_mut(name)
                .expect("the CRD exists"),
        );
    }
}

fn options(version: &str, started_at: i64) -> Options {
    Options {
        registrant: Registrant {
            version: version.to_owned(),
            started_at: Timestamp::from_second(started_at).expect("in range"),
            namespace: "materialize".to_owned(),
        },
        conversion: None,
        additional_columns: Vec::new(),
    }
}

fn with_v1(mut options: Options) -> Options {
    options.conversion = Some(Conversion {
        service_name: "operator".to_owned(),
        service_namespace: "materialize".to_owned(),
        service_port: 8001,
        ca_bundle: b"PEM".to_vec(),
    });
    options
}

fn version_names(crd: &Value) -> Vec<&str> {
    crd["spec"]["versions"]
        .as_array()
        .expect("versions are a list")
        .iter()
        .map(|version| version["name"].as_str().expect("versions have names"))
        .collect()
}

async fn register(server: &Server, options: &Options) {
    register_crds(&server.client(), options).await.expect("nothing fails");
}

#[tokio::test]
async fn all_four_are_written_once_by_forced_apply() {
    let server = Server::default();
    register(&server, &options("0.1.0", 1)).await;
    assert_eq!(
        server.take_writes(),
        [
            "balancers.materialize.cloud",
            "consoles.materialize.cloud",
            MATERIALIZES,
            "vpcendpoints.materialize.cloud"
        ]
    );
    for query in &server.0.lock().expect("free").queries {
        assert!(
            query.contains("fieldManager=orchestratord.materialize.cloud"),
            "{query}"
        );
        assert!(query.contains("force=true"), "{query}");
    }
    assert!(server.crd(MATERIALIZES)["spec"]["conversion"]["webhook"].is_null());

    register(&server, &options("0.1.0", 1)).await;
    assert_eq!(server.take_writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_restarted_replica_writes_nothing() {
    let server = Server::default();
    register(&server, &with_v1(options("0.1.0", 1))).await;
    server.take_writes();
    register(&server, &with_v1(options("0.1.0", 2))).await;
    assert_eq!(server.take_writes(), Vec::<String>::new());
}

#[tokio::test]
async fn the_webhook_stands_beside_both_versions() {
    let server = Server::default();
    register(&server, &with_v1(options("0.1.0", 1))).await;
    let crd = server.crd(MATERIALIZES);
    assert_eq!(version_names(&crd), ["v1", "v1alpha1"]);
    assert_eq!(
        crd["spec"]["conversion"],
        json!({
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {
                    "caBundle": "UEVN",
                    "service": {"name": "operator", "namespace": "materialize", "path": "/convert", "port": 8001},
                },
            },
        })
    );
}

#[tokio::test]
async fn switching_v1_writes_only_the_crd_of_materialize() {
    let server = Server::default();
    register(&server, &options("0.1.0", 1)).await;
    server.take_writes();
    register(&server, &with_v1(options("0.1.0", 2))).await;
    assert_eq!(server.take_writes(), [MATERIALIZES]);
    register(&server, &options("0.1.0", 3)).await;
    assert_eq!(server.take_writes(), [MATERIALIZES]);
    assert_eq!(version_names(&server.crd(MATERIALIZES)), ["v1alpha1"]);
}

#[tokio::test]
async fn a_new_certificate_authority_is_written() {
    let server = Server::default();
    let mut options = with_v1(options("0.1.0", 1));
    register(&server, &options).await;
    server.take_writes();
    options.conversion.as_mut().expect("set").ca_bundle = b"other".to_vec();
    register(&server, &options).await;
    assert_eq!(server.take_writes(), [MATERIALIZES]);
}

#[tokio::test]
async fn a_certificate_authority_is_no_reason_to_stand_back() {
    let server = Server::default();
    register(&server, &with_v1(options("0.1.0", 2))).await;
    server.take_writes();
    let mut started_earlier = with_v1(options("0.1.0", 1));
    started_earlier.conversion.as_mut().expect("set").ca_bundle = b"other".to_vec();
    register(&server, &started_earlier).await;
    assert_eq!(server.take_writes(), [MATERIALIZES]);
}

#[tokio::test]
async fn what_was_removed_by_hand_is_restored() {
    for remove in [
        |crd: &mut Value| crd["spec"]["conversion"] = json!({"strategy": "None"}),
        |crd: &mut Value| drop(crd["spec"]["versions"].as_array_mut().expect("a list").remove(0)),
        |crd: &mut Value| {
            let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
            drop(
                crd.pointer_mut(spec)
                    .expect("exists")
                    .as_object_mut()
                    .expect("an object")
                    .remove("podLabels"),
            );
        },
        |crd: &mut Value| crd["metadata"]["annotations"] = json!({}),
    ] {
        let server = Server::default();
        let options = with_v1(options("0.1.0", 1));
        register(&server, &options).await;
        let before = server.crd(MATERIALIZES);
        server.take_writes();
        server.edit(MATERIALIZES, remove);
        register(&server, &options).await;
        assert_eq!(server.take_writes(), [MATERIALIZES]);
        assert_eq!(server.crd(MATERIALIZES), before);
    }
}

#[tokio::test]
async fn an_existing_vpc_endpoint_crd_is_left_as_it_is() {
    let server = Server::default();
    let foreign = json!({
        "metadata": {"name": "vpcendpoints.materialize.cloud"},
        "spec": {"group": "materialize.cloud", "names": {"kind": "VpcEndpoint", "plural": "vpcendpoints"}, "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    });
    server
        .0
        .lock()
        .expect("free")
        .crds
        .insert("vpcendpoints.materialize.cloud".to_owned(), foreign.clone());
    register(&server, &options("0.1.0", 1)).await;
    assert_eq!(server.crd("vpcendpoints.materialize.cloud"), foreign);
    assert_eq!(server.take_writes().len(), 3);
}

#[tokio::test]
async fn a_refused_definition_is_fatal_and_an_outage_is_not() {
    for (code, fatal) in [
        (400, true),
        (422, true),
        (401, false),
        (403, false),
        (409, false),
        (429, false),
        (500, false),
        (503, false),
    ] {
        let server = Server::default();
        server.0.lock().expect("free").refuse_writes = Some(code);
        let error = register_crds(&server.client(), &options("0.1.0", 1))
            .await
            .expect_err("writes are refused");
        assert_eq!(error.is_fatal(), fatal, "{code}: {error}");
        assert!(
            error.to_string().contains(MATERIALIZES),
            "the first of the list is reported: {error}"
        );
        assert_eq!(server.take_writes().len(), 4, "all are attempted");
    }
}

#[tokio::test]
async fn the_higher_version_wins_then_the_later_start() {
    for (first, second, written) in [
        (("0.1.0", 1), ("0.2.0", 1), true),
        (("0.2.0", 1), ("0.1.0", 9), false),
        (("0.9.0", 1), ("0.10.0", 1), true),
        (("0.1.0", 1), ("0.1.0", 2), true),
        (("0.1.0", 2), ("0.1.0", 1), false),
        (("garbage", 9), ("0.1.0", 1), true),
    ] {
        let server = Server::default();
        register(&server, &options(first.0, first.1)).await;
        server.take_writes();
        register(&server, &with_v1(options(second.0, second.1))).await;
        let expected: &[&str] = if written { &[MATERIALIZES] } else { &[] };
        assert_eq!(server.take_writes(), expected, "{first:?} then {second:?}");
    }
}

#[tokio::test]
async fn the_annotation_names_the_registrant() {
    let server = Server::default();
    register(&server, &options("0.1.0", 1)).await;
    let crd = server.crd(MATERIALIZES);
    let text = crd["metadata"]["annotations"][ANNOTATION_REGISTRATION]
        .as_str()
        .expect("signed");
    let annotation: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(annotation["version"], "0.1.0");
    assert_eq!(annotation["namespace"], "materialize");
    assert_eq!(annotation["startedAt"], "1970-01-01T00:00:01Z");
    assert_eq!(annotation["hash"].as_str().map(str::len), Some(64));
}

#[test]
fn a_crd_that_is_not_established_says_why() {
    let crd: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "x"},
        "spec": {"group": "g", "names": {"kind": "K", "plural": "ks"}, "scope": "Namespaced", "versions": []},
        "status": {"conditions": [
            {"type": "NamesAccepted", "status": "False", "message": "\"mzs\" is already in use"},
            {"type": "Established", "status": "False", "message": "not all names are accepted"},
        ]},
    }))
    .expect("a CRD");
    let text = RegistrationError::not_established("x", Some(&crd)).to_string();
    assert!(text.contains("\"mzs\" is already in use"), "{text}");
}
