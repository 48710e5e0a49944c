//! The routes, as warp filters.

use std::sync::Arc;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use tokio::time::{Instant, timeout};
use warp::{Filter, Rejection, Reply};

use super::Context;
use super::body::{self, Body, BodyError};
use crate::webhook::review::{self, Answer, Outcome};
use crate::webhook::state::Readiness;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// All routes: `POST /convert`, `GET /healthz`, `GET /readyz`.
pub(super) fn routes(
    context: Arc<Context>,
) -> impl Filter<Extract = (impl Reply,), Error = Rejection> + Clone + Send + Sync + 'static {
    let readiness = context.readiness.clone();
    let convert = warp::path!("convert")
        .and(warp::post())
        .and(warp::header::optional::<String>("content-type"))
        .and(warp::header::optional::<usize>("content-length"))
        .and(warp::body::stream())
        .then(move |content_type: Option<String>, length, stream| {
            let context = context.clone();
            async move {
                let started = Instant::now();
                let answer = if is_json(content_type.as_deref()) {
                    match body::read(stream, length, &context.limits, &context.budget).await {
                        Ok(body) => convert(body, &context).await,
                        Err(error) => refuse(&error),
                    }
                } else {
                    refuse_with(
                        StatusCode::UNSUPPORTED_MEDIA_TYPE,
                        "expected Content-Type: application/json".to_owned(),
                    )
                };
                context
                    .metrics
                    .observe_webhook_request(label(&answer.outcome), started.elapsed());
                log(&answer.outcome);
                reply(answer.status, if answer.json { JSON } else { TEXT }, answer.body)
            }
        });
    let healthz = warp::path!("healthz")
        .and(warp::get())
        .map(|| reply(StatusCode::OK, TEXT, b"ok\n".to_vec()));
    let readyz = warp::path!("readyz")
        .and(warp::get())
        .map(move || match readiness.get() {
            Readiness::Ready => reply(StatusCode::OK, TEXT, b"ok\n".to_vec()),
            Readiness::NotReady(reason) => reply(
                StatusCode::SERVICE_UNAVAILABLE,
                TEXT,
                format!("{reason}\n").into_bytes(),
            ),
        });
    convert.or(healthz).unify().or(readyz).unify()
}

/// Converts; what takes long, on a thread where it delays nobody.
async fn convert(body: Body, context: &Context) -> Answer {
    let Ok(turn) = timeout(context.limits.queue, context.budget.turn()).await else {
        return refuse(&BodyError::Overloaded);
    };
    let Body { bytes, share } = body;
    if bytes.len() <= context.limits.inline {
        let answer = review::answer(&bytes);
        drop((turn, share));
        return answer;
    }
    let work = move || {
        let answer = review::answer(&bytes);
        drop((turn, share));
        answer
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        // A fault of this program; the panic itself is in the log.
        Err(_) => refuse_with(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the conversion ended unexpectedly".to_owned(),
        ),
    }
}

fn refuse(error: &BodyError) -> Answer {
    let status = match error {
        BodyError::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
        BodyError::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        BodyError::Incomplete => StatusCode::BAD_REQUEST,
    };
    refuse_with(status, error.to_string())
}

fn refuse_with(status: StatusCode, message: String) -> Answer {
    Answer {
        status,
        json: false,
        body: format!("{message}\n").into_bytes(),
        outcome: Outcome::Refused(message),
    }
}

/// Whether a content type is JSON, whatever its parameters.
fn is_json(content_type: Option<&str>) -> bool {
    let essence = content_type
        .and_then(|text| text.split(';').next())
        .unwrap_or_default()
        .trim();
    let subtype = essence
        .split_once('/')
        .filter(|(kind, _)| kind.eq_ignore_ascii_case("application"));
    subtype.is_some_and(|(_, subtype)| {
        subtype.eq_ignore_ascii_case("json") || subtype.to_ascii_lowercase().ends_with("+json")
    })
}

/// Value of the metric's label `outcome`.
fn label(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Converted { .. } => "converted",
        Outcome::Failed(_) => "failed",
        Outcome::Refused(_) => "refused",
    }
}

fn log(outcome: &Outcome) {
    match outcome {
        Outcome::Converted { objects, to } => tracing::debug!(objects, to, "converted"),
        Outcome::Failed(message) => tracing::warn!(message, "an object can't be converted"),
        Outcome::Refused(message) => tracing::warn!(message, "a request to the webhook was refused"),
    }
}

fn reply(status: StatusCode, content_type: HeaderValue, body: Vec<u8>) -> Response<Vec<u8>> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_many_names() {
        for json in [
            "application/json",
            "application/json; charset=utf-8",
            "Application/JSON;x",
            "application/vnd.x+json",
        ] {
            assert!(is_json(Some(json)), "{json}");
        }
        for other in [
            None,
            Some(""),
            Some("text/plain"),
            Some("application/yaml"),
            Some("text/json"),
            Some("json"),
        ] {
            assert!(!is_json(other), "{other:?}");
        }
    }
}
