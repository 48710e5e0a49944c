//! Against a small API server in memory that knows CRDs only and behaves as the real one for server-side apply by a
//! single manager. The same on a real API server is an end-to-end scenario.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::api::labels::ANNOTATION_REGISTRATION;
use crate::webhook::certificates::testing::{ca, hours, now};

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
    /// How many writes are to fail with a conflict.
    conflicts: usize,
    /// Whether the Service `rival` has a ready endpoint; none if it does not exist.
    rival_ready: Option<bool>,
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
            Method::GET if name == "rival" => match state.rival_ready {
                Some(_) => (200, json!({"metadata": {"name": "rival"}})),
                None => failure(404),
            },
            Method::GET if name == "endpointslices" => {
                let endpoint = json!({"addresses": ["10.0.0.1"], "conditions": {"ready": state.rival_ready}});
                let slice = json!({"metadata": {}, "addressType": "IPv4", "endpoints": [endpoint]});
                (200, json!({"metadata": {}, "items": [slice]}))
            }
            Method::GET => state
                .crds
                .get(&name)
                .map_or_else(|| failure(404), |crd| (200, crd.clone())),
            Method::PATCH if state.refuse_writes.is_some() => failure(state.refuse_writes.unwrap_or_default()),
            Method::PATCH if state.conflicts > 0 => {
                state.conflicts -= 1;
                failure(409)
            }
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
    register_with(server, options, &Authorities::default()).await;
}

async fn register_with(server: &Server, options: &Options, own: &Authorities) -> Vec<Registered> {
    register_crds(&server.client(), options, own, now())
        .await
        .expect("nothing fails")
}

fn authority(name: &str) -> Authorities {
    Authorities::from_pem_lossy(ca(name, hours(9000)).pem.as_bytes())
}

fn named(server: &Server) -> Authorities {
    let crd = serde_json::from_value(server.crd(MATERIALIZES)).expect("a CRD");
    bundle::live(&crd)
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
async fn the_authorities_of_all_replicas_are_named() {
    let server = Server::default();
    let options = with_v1(options("0.1.0", 1));
    let (a, b) = (authority("a"), authority("b"));
    register_with(&server, &options, &a).await;
    assert_eq!(named(&server), a);
    server.take_writes();
    let registered = register_with(&server, &options, &b).await;
    assert_eq!(server.take_writes(), [MATERIALIZES]);
    let mut both = a.clone();
    both.extend(&b);
    assert_eq!(named(&server), both);
    assert_eq!(registered[0].look_again, Some(now() + SignedDuration::from_mins(10)));
    // Each is content now, whatever the bytes.
    server.edit(MATERIALIZES, |crd| {
        let pem = [b"# by hand\n".to_vec(), b.to_pem(), a.to_pem()].concat();
        let bytes = serde_json::to_value(k8s_openapi::ByteString(pem)).expect("serialises");
        crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = bytes;
    });
    register_with(&server, &options, &a).await;
    register_with(&server, &options, &b).await;
    assert_eq!(server.take_writes(), Vec::<String>::new());
}

#[tokio::test]
async fn who_stands_back_adds_only_its_authority() {
    let server = Server::default();
    let (a, b) = (authority("a"), authority("b"));
    register_with(&server, &with_v1(options("0.2.0", 1)), &a).await;
    server.edit(MATERIALIZES, |crd| {
        crd["spec"]["versions"][1]["schema"]["x"] = Value::Null;
    });
    let before = server.crd(MATERIALIZES);
    server.take_writes();
    let mut older = with_v1(options("0.1.0", 2));
    older.additional_columns = vec![CustomResourceColumnDefinition::default()];
    let registered = register_with(&server, &older, &b).await;
    assert!(matches!(registered[0].outcome, Outcome::Yielded(_)));
    assert_eq!(server.take_writes(), [MATERIALIZES]);
    let after = server.crd(MATERIALIZES);
    assert!(named(&server).contains_all(&a) && named(&server).contains_all(&b));
    assert_eq!(after["spec"]["versions"][0], before["spec"]["versions"][0]);
    assert_eq!(
        after["metadata"]["annotations"][ANNOTATION_REGISTRATION],
        before["metadata"]["annotations"][ANNOTATION_REGISTRATION]
    );
    register_with(&server, &older, &b).await;
    assert_eq!(server.take_writes(), Vec::<String>::new());
}

#[tokio::test]
async fn who_stands_back_before_a_crd_without_webhook_adds_nothing() {
    let server = Server::default();
    register(&server, &options("0.1.0", 2)).await;
    server.take_writes();
    let registered = register_with(&server, &with_v1(options("0.1.0", 1)), &authority("a")).await;
    assert!(matches!(registered[0].outcome, Outcome::Yielded(_)));
    assert_eq!(server.take_writes(), Vec::<String>::new());
}

#[tokio::test]
async fn writes_carry_the_version_that_they_were_computed_from() {
    let server = Server::default();
    register(&server, &options("0.1.0", 1)).await;
    server.edit(MATERIALIZES, |crd| crd["metadata"]["resourceVersion"] = json!("41"));
    server.0.lock().expect("free").conflicts = 2;
    server.take_writes();
    register(&server, &with_v1(options("0.1.0", 2))).await;
    assert_eq!(
        server.take_writes(),
        [MATERIALIZES; 3],
        "read again after each conflict"
    );
    assert_eq!(server.crd(MATERIALIZES)["metadata"]["resourceVersion"], "41");
}

#[tokio::test]
async fn the_webhook_of_another_release_that_lives_blocks() {
    for (mine, theirs, ready, blocked) in [
        (true, "other", Some(true), true),
        (true, "other", Some(false), false),
        (true, "other", None, false),
        (false, "other", Some(true), true),
        (false, "materialize", Some(true), false),
    ] {
        let server = Server::default();
        let mut rival = with_v1(options("0.1.0", 1));
        let conversion = rival.conversion.as_mut().expect("set");
        conversion.service_namespace = theirs.to_owned();
        conversion.service_name = "rival".to_owned();
        register(&server, &rival).await;
        server.take_writes();
        server.0.lock().expect("free").rival_ready = ready;
        let ours = if mine {
            with_v1(options("0.2.0", 1))
        } else {
            options("0.2.0", 1)
        };
        let registered = register_with(&server, &ours, &Authorities::default()).await;
        let case = format!("{mine} {theirs} {ready:?}");
        assert_eq!(matches!(registered[0].outcome, Outcome::Blocked(_)), blocked, "{case}");
        let expected: &[&str] = if blocked { &[] } else { &[MATERIALIZES] };
        assert_eq!(server.take_writes(), expected, "{case}");
    }
}

#[test]
fn a_missing_stanza_or_authority_is_urgent_while_v1_is_served() {
    let ours = with_v1(options("0.1.0", 1));
    let own = authority("a");
    let plan = bundle::plan(&Authorities::default(), &bundle::Ledger::default(), &own, now());
    let fine = render::crd(MATERIALIZES, &ours, &plan, None);
    assert!(!is_urgent(&fine, &ours, &own));
    assert!(is_urgent(&fine, &ours, &authority("b")));
    let mut without = fine.clone();
    without.spec.conversion = None;
    assert!(is_urgent(&without, &ours, &own));
    without.spec.versions.remove(0);
    assert!(!is_urgent(&without, &ours, &own), "nobody can write at v1");
    let mut elsewhere = ours.clone();
    elsewhere.conversion.as_mut().expect("set").service_name = "other".to_owned();
    assert!(is_urgent(&fine, &elsewhere, &own));
    assert!(!is_urgent(&fine, &options("0.1.0", 1), &own), "no webhook of our own");
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
        let error = register_crds(&server.client(), &options("0.1.0", 1), &Authorities::default(), now())
            .await
            .expect_err("writes are refused");
        assert_eq!(error.is_fatal(), fatal, "{code}: {error}");
        assert!(
            error.to_string().contains(MATERIALIZES),
            "the first of the list is reported: {error}"
        );
        let attempts = if code == 409 { 4 * (CONFLICTS + 1) } else { 4 };
        assert_eq!(server.take_writes().len(), attempts, "all are attempted");
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
