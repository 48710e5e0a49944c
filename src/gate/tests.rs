#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
//! The looks at the pods, against a client that answers from a script, on a paused clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures::{FutureExt as _, stream};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::{BoxError, service_fn};

use super::*;

/// An answer of the script.
#[derive(Clone)]
enum Answer {
    /// To a list: these pods.
    List(Vec<Value>),
    /// To anything: this status.
    Status(u16),
    /// To a watch: these events, then silence.
    Events(Vec<(&'static str, Value)>),
}

struct Stage {
    predecessors: Predecessors,
    /// The URLs that were asked for, and when.
    asked: Arc<Mutex<Vec<(Duration, String)>>>,
}

// === impl Stage ===

impl Stage {
    /// A look at pods with the label `app=operator` by the replica in the pod `me`.
    fn new(script: Vec<Answer>) -> Self {
        let labels = BTreeMap::from([("app".to_owned(), "operator".to_owned())]);
        Stage::with_labels(&labels, script)
    }

    fn with_labels(labels: &BTreeMap<String, String>, script: Vec<Answer>) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, script, start) = (asked.clone(), Mutex::new(VecDeque::from(script)), Instant::now());
        let service = service_fn(move |request: Request<Body>| {
            log.lock().unwrap().push((start.elapsed(), request.uri().to_string()));
            let answer = script.lock().unwrap().pop_front();
            let answer = answer.unwrap_or_else(|| panic!("not foreseen: {}", request.uri()));
            std::future::ready(Ok::<_, BoxError>(respond(answer)))
        });
        let own = Own {
            names: vec!["me".to_owned()],
            shows_election: true,
        };
        Stage {
            predecessors: Predecessors::new(Client::new(service, "ns"), "ns", labels, own, Clock::tokio()),
            asked,
        }
    }

    /// How long the controllers had to wait.
    async fn waited(&self) -> Duration {
        let start = Instant::now();
        self.predecessors.ended().await;
        start.elapsed()
    }

    /// The moments of the lists.
    fn lists(&self) -> Vec<Duration> {
        let asked = self.asked.lock().unwrap();
        let lists = asked.iter().filter(|(_, url)| !url.contains("watch="));
        lists.map(|(at, _)| *at).collect()
    }
}

fn respond(answer: Answer) -> Response<UnsyncBoxBody<Bytes, BoxError>> {
    let whole = |body: Value| Full::from(body.to_string()).map_err(BoxError::from).boxed_unsync();
    let (status, body) = match answer {
        Answer::List(items) => {
            let list =
                json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items});
            (200, whole(list))
        }
        Answer::Status(code) => {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": "r", "message": "m"});
            (code, whole(status))
        }
        Answer::Events(events) => {
            let lines = events.into_iter().map(|(kind, object)| {
                let line = json!({"type": kind, "object": object}).to_string() + "\n";
                Ok::<_, BoxError>(Frame::data(Bytes::from(line)))
            });
            let lines = stream::iter(lines.collect::<Vec<_>>()).chain(stream::pending());
            (200, StreamBody::new(lines).boxed_unsync())
        }
    };
    Response::builder().status(status).body(body).unwrap()
}

fn pod(name: &str, image: &str, phase: &str) -> Value {
    let variable = json!([{"name": "ORCHESTRATORD_LEADER_ELECTION_IDENTITY", "value": name}]);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": image, "env": if name == "me" { variable } else { json!([]) }}]},
        "status": {"phase": phase},
    })
}

fn me() -> Value {
    pod("me", "new", "Running")
}

fn old() -> Value {
    pod("old", "old", "Running")
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn asks_for_the_pods_of_its_namespace_with_the_given_labels() {
    let stage = Stage::new(vec![Answer::List(vec![me()])]);
    assert_eq!(stage.waited().await, Duration::ZERO);
    let asked = stage.asked.lock().unwrap();
    assert_eq!(asked[0].1, "/api/v1/namespaces/ns/pods?&labelSelector=app%3Doperator");
}

#[tokio::test(start_paused = true)]
async fn looks_again_every_30_seconds() {
    let silence = || Answer::Events(Vec::new());
    let stage = Stage::new(vec![
        Answer::List(vec![old(), me()]),
        silence(),
        Answer::List(vec![old(), me()]),
        silence(),
        Answer::List(vec![me()]),
    ]);
    assert_eq!(stage.waited().await, SECOND * 60);
    assert_eq!(stage.lists(), [Duration::ZERO, SECOND * 30, SECOND * 60]);
}

#[tokio::test(start_paused = true)]
async fn starts_as_soon_as_the_last_one_ends() {
    for end in [("DELETED", old()), ("MODIFIED", pod("old", "old", "Succeeded"))] {
        let events = vec![
            ("MODIFIED", old()),
            ("DELETED", pod("other", "old", "Running")),
            ("ADDED", pod("old", "old", "Pending")),
            end,
        ];
        let stage = Stage::new(vec![
            Answer::List(vec![old(), me()]),
            Answer::Events(events),
            Answer::List(vec![me()]),
        ]);
        assert_eq!(stage.waited().await, Duration::ZERO);
        let asked = stage.asked.lock().unwrap();
        assert!(asked[1].1.contains("resourceVersion=7"), "{asked:?}");
        assert_eq!(asked.len(), 3, "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_permission_to_watch_it_still_looks_every_30_seconds() {
    let stage = Stage::new(vec![
        Answer::List(vec![old(), me()]),
        Answer::Status(403),
        Answer::List(vec![me()]),
    ]);
    assert_eq!(stage.waited().await, SECOND * 30);
}

#[tokio::test(start_paused = true)]
async fn without_labels_or_permission_to_list_it_starts_at_once() {
    let stage = Stage::with_labels(&BTreeMap::new(), Vec::new());
    assert_eq!(stage.waited().await, Duration::ZERO, "and asks nothing");
    let stage = Stage::new(vec![Answer::Status(403)]);
    assert_eq!(stage.waited().await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn any_other_failure_is_repeated_and_never_read_as_none() {
    let failures = [401, 429, 500, 503, 400].map(Answer::Status);
    let lists = [
        Answer::List(vec![old(), me()]),
        Answer::Status(410),
        Answer::List(vec![me()]),
    ];
    let stage = Stage::new(failures.into_iter().chain(lists).collect());
    let pauses = SECOND * 31 / 4;
    assert_eq!(
        stage.waited().await,
        pauses + SECOND * 30,
        "0.25 + 0.5 + 1 + 2 + 4 s, then one wait"
    );
    assert_eq!(stage.lists().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_succeeds_never_starts_the_controllers() {
    let stage = Stage::new(vec![Answer::Status(500); 100]);
    let waiting = tokio::time::timeout(SECOND * 600, stage.waited());
    assert!(waiting.boxed().await.is_err());
}
