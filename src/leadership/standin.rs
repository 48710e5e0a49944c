//! A stand-in for the connection to an API server that knows one Lease, for the tests of this folder. It keeps to what
//! a real API server does with Leases (resourceVersion, uid, 409, 404, no-op writes), and loses, holds and refuses
//! requests when told to. The scenarios on a real API server are elsewhere (`e2e`); this one runs on a paused clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::StreamExt as _;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tower::{BoxError, service_fn};

use crate::clock::{Clock, Moment};

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// The stand-in. Clones are the same server; each replica gets a [`Line`] of its own to it.
#[derive(Clone)]
pub(super) struct ApiServer {
    clock: Clock,
    state: Arc<Mutex<State>>,
    /// The number of requests that arrived.
    arrived: watch::Sender<usize>,
}

/// One replica's connection, which can fail by itself.
#[derive(Clone)]
pub(super) struct Line {
    server: ApiServer,
    faults: Arc<Mutex<Faults>>,
}

/// What one request is made to suffer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// The request never arrives; the connection breaks.
    Lost,
    /// The request is served and its answer lost.
    ReplyLost,
    /// The request is served, but its answer comes this much later.
    ReplyDelayed(Duration),
    /// Refused with this status before anything is stored.
    Status(u16),
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) at: Moment,
    pub(super) verb: &'static str,
    /// The status it was answered with.
    pub(super) status: u16,
    /// The object it carried.
    pub(super) body: Value,
}

#[derive(Default)]
struct State {
    lease: Option<Value>,
    version: u64,
    uids: u64,
    seen: Vec<Seen>,
    watchers: Vec<mpsc::UnboundedSender<String>>,
    frozen: Vec<mpsc::UnboundedSender<String>>,
}

#[derive(Default)]
struct Faults {
    /// The number of requests so far.
    passed: usize,
    cut: bool,
    /// Verb and fault; each is used once, in order per verb.
    script: VecDeque<(&'static str, Fault)>,
    forbidden: Vec<&'static str>,
}

// === impl ApiServer ===

impl ApiServer {
    pub(super) fn new(clock: &Clock) -> Self {
        let state = State {
            version: 100,
            ..State::default()
        };
        ApiServer {
            clock: clock.clone(),
            state: Arc::new(Mutex::new(state)),
            arrived: watch::Sender::new(0),
        }
    }

    pub(super) fn line(&self) -> Line {
        Line {
            server: self.clone(),
            faults: Arc::default(),
        }
    }

    pub(super) fn lease(&self) -> Option<Value> {
        self.state().lease.clone()
    }

    pub(super) fn holder(&self) -> Option<String> {
        self.state()
            .lease
            .as_ref()
            .and_then(|lease| lease["spec"]["holderIdentity"].as_str().map(str::to_owned))
    }

    pub(super) fn transitions(&self) -> Option<i64> {
        self.state()
            .lease
            .as_ref()
            .and_then(|lease| lease["spec"]["leaseTransitions"].as_i64())
    }

    /// What an outsider does to the Lease, whatever it is; creates it if there is none.
    pub(super) fn edit(&self, edit: impl FnOnce(&mut Value)) {
        let mut state = self.state();
        let mut lease = state.lease.clone().unwrap_or_else(|| {
            state.uids += 1;
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {},
                   "metadata": {"name": super::LEASE_NAME, "namespace": "ns", "uid": format!("uid-{}", state.uids)}})
        });
        edit(&mut lease);
        state.store(lease);
    }

    /// What an outsider does with `kubectl delete lease`.
    pub(super) fn delete(&self) {
        let mut state = self.state();
        if let Some(lease) = state.lease.take() {
            state.version += 1;
            state.tell("DELETED", &lease);
        }
    }

    /// From now on the open watches stay open and hear of nothing, as behind a firewall that forgot them.
    pub(super) fn freeze_watches(&self) {
        let mut state = self.state();
        let frozen = std::mem::take(&mut state.watchers);
        state.frozen.extend(frozen);
    }

    /// Breaks all watches.
    pub(super) fn break_watches(&self) {
        self.state().watchers.clear();
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    /// The requests of one verb.
    pub(super) fn seen_verb(&self, verb: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.verb == verb).collect()
    }

    /// Waits until the server has seen what `enough` looks for.
    pub(super) async fn until(&self, enough: impl Fn(&[Seen]) -> bool) {
        let mut arrived = self.arrived.subscribe();
        while !enough(&self.seen()) {
            arrived.changed().await.expect("the server lives on");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while it holds the lock")
    }

    fn serve(&self, verb: &'static str, query: &str, body: &Value) -> Answer {
        self.arrived.send_modify(|arrived| *arrived += 1);
        let mut state = self.state();
        let (status, answer) = match verb {
            "get" => match &state.lease {
                Some(lease) => (200, lease.clone()),
                None => status(404, "leases \"orchestratord\" not found"),
            },
            "list" => {
                let items: Vec<_> = state.lease.iter().cloned().collect();
                (
                    200,
                    json!({"kind": "LeaseList", "metadata": {"resourceVersion": state.version.to_string()}, "items": items}),
                )
            }
            "watch" => {
                let (sender, receiver) = mpsc::unbounded_channel();
                // Events between the list and the watch are replayed as the object's latest state.
                let since = query.split('&').find_map(|part| part.strip_prefix("resourceVersion="));
                let since: u64 = since.and_then(|version| version.parse().ok()).unwrap_or(0);
                if let Some(lease) = &state.lease
                    && version_of(lease) > since
                {
                    let _ = sender.send(event("MODIFIED", lease));
                }
                state.watchers.push(sender);
                let at = self.clock.now();
                state.seen.push(Seen {
                    at,
                    verb,
                    status: 200,
                    body: Value::Null,
                });
                return watch_answer(receiver);
            }
            "create" if state.lease.is_some() => status(409, "leases \"orchestratord\" already exists"),
            "create" => {
                state.uids += 1;
                let mut lease = body.clone();
                lease["metadata"]["uid"] = json!(format!("uid-{}", state.uids));
                (201, state.store(lease))
            }
            "update" => state.update(body),
            other => panic!("the operator must not {other} Leases"),
        };
        let at = self.clock.now();
        state.seen.push(Seen {
            at,
            verb,
            status,
            body: body.clone(),
        });
        answer_of(status, &answer)
    }
}

// === impl State ===

impl State {
    fn update(&mut self, body: &Value) -> (u16, Value) {
        let Some(version) = body["metadata"]["resourceVersion"].as_str() else {
            panic!("an update without resourceVersion steals the Lease");
        };
        let Some(current) = self.lease.clone() else {
            // A PUT that finds nothing creates, unless it carries a uid.
            if body["metadata"]["uid"].is_string() {
                return status(409, "uid mismatch");
            }
            self.uids += 1;
            let mut lease = body.clone();
            lease["metadata"]["uid"] = json!(format!("uid-{}", self.uids));
            return (201, self.store(lease));
        };
        if current["metadata"]["resourceVersion"] != version {
            return status(409, "the object has been modified");
        }
        if body["metadata"]["uid"].is_string() && body["metadata"]["uid"] != current["metadata"]["uid"] {
            return status(409, "uid mismatch");
        }
        if body["spec"] == current["spec"] && body["metadata"]["labels"] == current["metadata"]["labels"] {
            return (200, current);
        }
        let mut lease = body.clone();
        lease["metadata"]["uid"] = current["metadata"]["uid"].clone();
        (200, self.store(lease))
    }

    fn store(&mut self, mut lease: Value) -> Value {
        for time in ["acquireTime", "renewTime"] {
            if let Some(text) = lease["spec"][time].as_str() {
                let fraction = text.rsplit_once('.').map_or("", |(_, fraction)| fraction);
                assert_eq!(
                    fraction.len(),
                    "000000Z".len(),
                    "a real API server answers 400 to {time} {text}"
                );
            }
        }
        if let Some(spec) = lease["spec"].as_object_mut() {
            spec.retain(|_, value| !value.is_null());
        }
        self.version += 1;
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let kind = if self.lease.is_some() { "MODIFIED" } else { "ADDED" };
        self.lease = Some(lease.clone());
        self.tell(kind, &lease);
        lease
    }

    fn tell(&mut self, kind: &str, lease: &Value) {
        let mut lease = lease.clone();
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let event = event(kind, &lease);
        self.watchers.retain(|watcher| watcher.send(event.clone()).is_ok());
    }
}

// === impl Line ===

impl Line {
    /// A client over this line.
    pub(super) fn client(&self) -> kube::Client {
        let line = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let line = line.clone();
            async move { line.pass(request).await }
        });
        kube::Client::new(service, "ns")
    }

    /// From now on nothing gets through and nothing comes back: requests hang.
    pub(super) fn cut(&self) {
        self.faults().cut = true;
    }

    /// Undoes [`Line::cut`].
    pub(super) fn mend(&self) {
        self.faults().cut = false;
    }

    /// Lets the next requests of `verb` suffer.
    pub(super) fn fault(&self, verb: &'static str, fault: Fault) {
        self.faults().script.push_back((verb, fault));
    }

    /// Takes the permission for these verbs away, and gives all others back.
    pub(super) fn forbid(&self, verbs: &[&'static str]) {
        self.faults().forbidden = verbs.to_vec();
    }

    /// The number of requests that this replica has sent, whatever became of them.
    pub(super) fn passed(&self) -> usize {
        self.faults().passed
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().expect("no test panics while it holds the lock")
    }

    async fn pass(&self, request: Request<Body>) -> Result<Answer, BoxError> {
        let query = request.uri().query().unwrap_or("").to_owned();
        let verb = match *request.method() {
            Method::GET if query.contains("watch=true") => "watch",
            Method::GET if request.uri().path().ends_with("/leases") => "list",
            Method::GET => "get",
            Method::POST => "create",
            Method::PUT => "update",
            _ => "patch or delete",
        };
        let body = request.into_body().collect_bytes().await?;
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        self.faults().passed += 1;
        if self.faults().cut {
            return std::future::pending().await;
        }
        if self.faults().forbidden.contains(&verb) {
            let (status, answer) = status(403, &format!("leases is forbidden: cannot {verb}"));
            return Ok(answer_of(status, &answer));
        }
        let fault = {
            let mut faults = self.faults();
            let position = faults.script.iter().position(|(of, _)| *of == verb);
            position.and_then(|position| faults.script.remove(position))
        };
        match fault.map(|(_, fault)| fault) {
            Some(Fault::Lost) => Err("connection reset".into()),
            Some(Fault::Status(code)) => {
                let (status, answer) = status(code, "as the test wants it");
                Ok(answer_of(status, &answer))
            }
            Some(Fault::ReplyLost) => {
                self.server.serve(verb, &query, &body);
                Err("connection reset".into())
            }
            Some(Fault::ReplyDelayed(time)) => {
                let answer = self.server.serve(verb, &query, &body);
                tokio::time::sleep(time).await;
                Ok(answer)
            }
            None => Ok(self.server.serve(verb, &query, &body)),
        }
    }
}

fn version_of(lease: &Value) -> u64 {
    lease["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

fn event(kind: &str, lease: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": lease}))
}

fn status(code: u16, message: &str) -> (u16, Value) {
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message, "reason": ""}),
    )
}

fn answer_of(status: u16, answer: &Value) -> Answer {
    let body = Full::new(Bytes::from(answer.to_string()))
        .map_err(|never| match never {})
        .boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(status).expect("a valid status");
    response
}

fn watch_answer(receiver: mpsc::UnboundedReceiver<String>) -> Answer {
    let frames = futures::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|event| (event, receiver))
    });
    let frames = frames.map(|event| Ok::<_, BoxError>(Frame::data(Bytes::from(event))));
    Response::new(StreamBody::new(frames).boxed_unsync())
}
