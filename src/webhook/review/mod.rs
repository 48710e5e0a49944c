//! The conversion review: its bytes in, status and bytes out (decision W1). See `docs/reference/webhook.md`.
//!
//! Belongs here: the shape of `ConversionReview` and which answer follows from which input. Does not belong here: the
//! conversion of an object (`api::convert`), HTTP, limits and metrics (`server`).

use std::borrow::Cow;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::api::convert::{ApiVersion, Converted, convert};

/// The answer to one request.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status. 200 also for a failed conversion: the API server hides the message of any other.
    pub status: StatusCode,
    /// Whether the body is JSON; else it is plain text.
    pub json: bool,
    /// Body.
    pub body: Vec<u8>,
    /// What happened.
    pub outcome: Outcome,
}

/// What happened to a review.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// All objects were converted.
    Converted {
        /// How many.
        objects: usize,
        /// The version they have now, as it was written.
        to: &'static str,
    },
    /// One object could not be converted, or the desired version is unknown. The text is the one that users see; it
    /// names the object and the path and has no value of a spec.
    Failed(String),
    /// The body is no review that could be answered; why.
    Refused(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    request: Option<Request<'a>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow, rename = "desiredAPIVersion")]
    desired_api_version: Cow<'a, str>,
    #[serde(borrow)]
    objects: Vec<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReviewAnswer<'a> {
    api_version: &'a str,
    kind: &'a str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    converted_objects: Vec<Converted<'a>>,
    result: ReviewResult<'a>,
}

#[derive(Serialize)]
struct ReviewResult<'a> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

/// Answers the review in `body`. All objects are converted, or none.
pub fn answer(body: &[u8]) -> Answer {
    let review: Review<'_> = match serde_json::from_slice(body) {
        Ok(review) => review,
        Err(error) => return refuse(&error),
    };
    let Some(request) = &review.request else {
        let review = Review {
            api_version: "apiextensions.k8s.io/v1".into(),
            kind: "ConversionReview".into(),
            request: None,
        };
        let message = "missing request".to_owned();
        let body = failure(&review, "", &message, Some("Invalid"));
        return Answer {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            json: true,
            body,
            outcome: Outcome::Refused(message),
        };
    };
    let Some(desired) = ApiVersion::parse(&request.desired_api_version) else {
        let message = format!("unexpected version: {}", request.desired_api_version);
        return failed(&review, &request.uid, message, Some("BadRequest"));
    };
    let converted: Result<Vec<_>, _> = request.objects.iter().map(|object| convert(object, desired)).collect();
    match converted {
        Err(error) => failed(&review, &request.uid, error.to_string(), None),
        Ok(converted_objects) => {
            let outcome = Outcome::Converted {
                objects: converted_objects.len(),
                to: desired.as_str(),
            };
            let response = Response {
                uid: &request.uid,
                converted_objects,
                result: ReviewResult {
                    status: "Success",
                    message: None,
                    reason: None,
                },
            };
            // The output is about as long as the input; derived fields are a few hundred bytes an object.
            let capacity = body.len() + 256 * (request.objects.len() + 1);
            Answer {
                status: StatusCode::OK,
                json: true,
                body: write(&review, response, capacity),
                outcome,
            }
        }
    }
}

/// The answer to a body that is no review at all.
fn refuse(error: &serde_json::Error) -> Answer {
    // Messages of serde_json may quote values; the place alone never does.
    let place = format!("line {}, column {}", error.line(), error.column());
    let (status, message) = if error.is_data() {
        (
            StatusCode::UNPROCESSABLE_ENTITY,
            format!(
                "expected a ConversionReview of apiextensions.k8s.io/v1 with request.uid, request.desiredAPIVersion and \
                 request.objects; {place} has something else"
            ),
        )
    } else {
        (
            StatusCode::BAD_REQUEST,
            format!("expected JSON; {place} has something else, or the text ends there"),
        )
    };
    Answer {
        status,
        json: false,
        body: format!("{message}\n").into_bytes(),
        outcome: Outcome::Refused(message),
    }
}

fn failed(review: &Review<'_>, uid: &str, message: String, reason: Option<&'static str>) -> Answer {
    Answer {
        status: StatusCode::OK,
        json: true,
        body: failure(review, uid, &message, reason),
        outcome: Outcome::Failed(message),
    }
}

fn failure(review: &Review<'_>, uid: &str, message: &str, reason: Option<&'static str>) -> Vec<u8> {
    let response = Response {
        uid,
        converted_objects: Vec::new(),
        result: ReviewResult {
            status: "Failure",
            message: Some(message),
            reason,
        },
    };
    write(review, response, 512)
}

#[expect(
    clippy::expect_used,
    reason = "every key is text, and writing into memory does not fail"
)]
fn write(review: &Review<'_>, response: Response<'_>, capacity: usize) -> Vec<u8> {
    let answer = ReviewAnswer {
        api_version: &review.api_version,
        kind: &review.kind,
        response,
    };
    let mut body = Vec::with_capacity(capacity);
    serde_json::to_writer(&mut body, &answer).expect("reviews serialise");
    body
}

#[cfg(test)]
mod tests;
