//! environmentd's HTTP routes: the leader API with the faults that were ordered for it, metrics, and little else.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode, header};
use serde_json::{Value, json};
use tracing::info;

use super::faults::{BadStatus, BadStatusKind};
use super::leader::Status;
use super::listeners::Http;
use super::routes;
use super::state::State;
use crate::http::{Handler, Reply, Request, empty, json, text, typed};

const HUGE: usize = 64 << 20;

/// The handler of one listener.
pub(crate) fn handler(listener: Http, state: Arc<State>) -> Handler {
    let listener = Arc::new(listener);
    Arc::new(move |request| {
        let (listener, state) = (Arc::clone(&listener), Arc::clone(&state));
        Box::pin(async move { answer(&listener, &state, &request).await })
    })
}

async fn answer(listener: &Http, state: &State, request: &Request) -> Reply {
    if request.path == "/api/login" && request.method == Method::POST {
        return routes::log_in(listener, &state.users, request);
    }
    if let Some(refusal) = routes::refuse(listener, &state.users, request) {
        return refusal;
    }
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/api/leader/status") => status(state).await,
        ("POST", "/api/leader/promote") => promote(state).await,
        ("POST", "/api/leader/skip-catchup") => skip_catchup(state).await,
        ("GET", "/api/livez" | "/api/readyz") => text(StatusCode::OK, "ready"),
        ("GET", path) if path == "/metrics" || path.starts_with("/metrics/") => text(StatusCode::OK, metrics(state)),
        ("GET", "/") => text(
            StatusCode::OK,
            format!("environmentd stand-in {}", state.config.version),
        ),
        (_, "/api/leader/status" | "/api/leader/promote" | "/api/leader/skip-catchup") => {
            empty(StatusCode::METHOD_NOT_ALLOWED)
        }
        _ => text(StatusCode::NOT_IMPLEMENTED, "a stand-in does not do this"),
    }
}

async fn status(state: &State) -> Reply {
    let spoilt = state.book().spoil_status();
    let right = || json(StatusCode::OK, &json!({ "status": state.status() }));
    let Some(BadStatus { kind, delay_ms, .. }) = spoilt else {
        return right();
    };
    info!(?kind, "the status is spoilt");
    match kind {
        BadStatusKind::Html => typed(
            StatusCode::OK,
            "text/html",
            "<html><body>Welcome to nginx!</body></html>",
        ),
        BadStatusKind::Garbage => typed(StatusCode::OK, "application/json", Bytes::from_static(b"\xff\xfe\x00{")),
        BadStatusKind::Unknown => json(StatusCode::OK, &json!({ "status": "Retired" })),
        BadStatusKind::Huge => typed(StatusCode::OK, "application/json", vec![b' '; HUGE]),
        BadStatusKind::Error => text(StatusCode::INTERNAL_SERVER_ERROR, "internal error"),
        BadStatusKind::Redirect => {
            let mut reply = empty(StatusCode::TEMPORARY_REDIRECT);
            reply.headers_mut().insert(
                header::LOCATION,
                header::HeaderValue::from_static("http://elsewhere.invalid/api/leader/status"),
            );
            reply
        }
        BadStatusKind::Slow => {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            right()
        }
        BadStatusKind::Hang => std::future::pending().await,
    }
}

async fn promote(state: &State) -> Reply {
    // A refusal is about the promotion itself; a leader is past it.
    let leads = state.status() == Status::IsLeader;
    let (refused, delay) = {
        let mut book = state.book();
        (!leads && book.refuse_promote(), book.faults().promote.delay_ms)
    };
    let outcome = if refused {
        Err("refused, as ordered")
    } else {
        state.promote()
    };
    info!(generation = state.config.args.deploy_generation, ?outcome, "promote");
    tokio::time::sleep(Duration::from_millis(delay)).await;
    match outcome {
        Ok(()) => json(StatusCode::OK, &json!({ "result": "Success" })),
        Err(message) => json(
            StatusCode::BAD_REQUEST,
            &json!({ "result": { "Failure": { "message": message } } }),
        ),
    }
}

async fn skip_catchup(state: &State) -> Reply {
    let (refused, delay) = {
        let mut book = state.book();
        (book.refuse_skip(), book.faults().skip_catchup.delay_ms)
    };
    if !refused {
        state.deployment().skip_catchup();
    }
    info!(
        generation = state.config.args.deploy_generation,
        refused, "skip-catchup"
    );
    tokio::time::sleep(Duration::from_millis(delay)).await;
    if refused {
        json(StatusCode::BAD_REQUEST, &json!({ "message": "refused, as ordered" }))
    } else {
        empty(StatusCode::NO_CONTENT)
    }
}

fn metrics(state: &State) -> String {
    let generation = state.config.args.deploy_generation;
    let version = Value::from(state.config.version.to_string());
    let leader = u8::from(state.status() == Status::IsLeader);
    format!(
        "# TYPE mz_standin_info gauge\nmz_standin_info{{version={version},generation=\"{generation}\"}} 1\n\
         # TYPE mz_standin_is_leader gauge\nmz_standin_is_leader {leader}\n"
    )
}
