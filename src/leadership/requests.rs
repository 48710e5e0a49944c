//! The requests on the one Lease: get, list, create, update and watch; never patch or delete (decision L8).
//!
//! Objects travel as plain JSON, so that whatever others put into the Lease survives a renewal, and so that a Lease of
//! any content is data and never a decoding error.

use std::fmt;
use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use kube::core::Status;
use serde_json::Value;

use super::LEASE_NAME;

/// The Lease's own client, bound to one namespace. It must not retry by itself (decision L10).
#[derive(Clone)]
pub(in crate::leadership) struct LeaseRequests {
    client: kube::Client,
    namespace: String,
}

/// What was asked of the API server, as RBAC names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::leadership) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
}

/// Why a request on the Lease brought nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::leadership) enum RequestError {
    /// 409: the Lease is no longer (or, for a create, already) what the request was made for. Nothing was stored.
    #[error("the Lease has changed meanwhile")]
    Conflict,
    /// 404 to a read: there is no Lease.
    #[error("there is no Lease")]
    Absent,
    /// 410 to a watch: its version is too old, it must start anew from a list.
    #[error("the version to watch from is too old")]
    Gone,
    /// 401 or 403. Nothing was stored.
    #[error("not allowed: {0}")]
    Forbidden(String),
    /// Another refusal, or a connection that could not be opened: certainly nothing was stored.
    #[error("{message}")]
    Refused {
        /// What the API server, or the connection, said.
        message: String,
        /// How long the API server asks to wait.
        retry_after: Option<Duration>,
    },
    /// A time-out, a broken connection, a server error or an answer that does not decode: a write may have been
    /// stored, or still may be.
    #[error("no usable answer: {message}")]
    Unknown {
        /// What went wrong.
        message: String,
        /// How long the API server asks to wait.
        retry_after: Option<Duration>,
    },
}

// === impl Verb ===

impl Verb {
    pub(in crate::leadership) fn writes(self) -> bool {
        matches!(self, Verb::Create | Verb::Update)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
        })
    }
}

// === impl RequestError ===

impl RequestError {
    /// Something that leaves open whether a write was stored.
    pub(in crate::leadership) fn unknown(message: impl Into<String>) -> Self {
        RequestError::Unknown {
            message: message.into(),
            retry_after: None,
        }
    }

    fn refused(message: impl fmt::Display) -> Self {
        RequestError::Refused {
            message: message.to_string(),
            retry_after: None,
        }
    }

    fn from_status(verb: Verb, status: &Status) -> Self {
        let asked = status
            .details
            .as_ref()
            .map_or(0, |details| u64::from(details.retry_after_seconds));
        let retry_after = (asked > 0).then_some(Duration::from_secs(asked));
        let names_namespace = status
            .details
            .as_ref()
            .is_some_and(|details| details.kind == "namespaces");
        let message = format!("{} ({})", status.message, status.code);
        match status.code {
            409 => RequestError::Conflict,
            404 if verb == Verb::Get && !names_namespace => RequestError::Absent,
            410 if verb == Verb::Watch => RequestError::Gone,
            401 | 403 => RequestError::Forbidden(message),
            400..=499 => RequestError::Refused { message, retry_after },
            _ => RequestError::Unknown { message, retry_after },
        }
    }

    fn from_client(verb: Verb, error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => RequestError::from_status(verb, status),
            kube::Error::BuildRequest(error) => RequestError::refused(error),
            error if never_connected(error) => RequestError::refused(chain(error)),
            error => RequestError::unknown(chain(error)),
        }
    }
}

// === impl LeaseRequests ===

impl LeaseRequests {
    pub(in crate::leadership) fn new(client: kube::Client, namespace: String) -> Self {
        LeaseRequests { client, namespace }
    }

    pub(in crate::leadership) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A quorum read: no `resourceVersion` is given, so no cache may answer.
    pub(in crate::leadership) async fn get(&self, bound: Duration) -> Result<Value, RequestError> {
        self.send(Verb::Get, Request::get(self.one()), None, bound).await
    }

    /// A quorum list of at most the one Lease, for a watch to start from. Returns it and the list's version.
    pub(in crate::leadership) async fn list(&self, bound: Duration) -> Result<(Option<Value>, String), RequestError> {
        let url = format!("{}?fieldSelector=metadata.name%3D{LEASE_NAME}", self.all());
        let mut list = self.send(Verb::List, Request::get(url), None, bound).await?;
        let Some(version) = list
            .pointer("/metadata/resourceVersion")
            .and_then(Value::as_str)
            .map(str::to_owned)
        else {
            return Err(RequestError::unknown("the list has no resourceVersion"));
        };
        let items = list
            .get_mut("items")
            .and_then(Value::as_array_mut)
            .map(std::mem::take)
            .unwrap_or_default();
        Ok((
            items.into_iter().find(|item| item["metadata"]["name"] == LEASE_NAME),
            version,
        ))
    }

    /// Creates the Lease, and fails with a conflict if there is one. Returns what was stored.
    pub(in crate::leadership) async fn create(&self, lease: &Value, bound: Duration) -> Result<Value, RequestError> {
        self.send(Verb::Create, Request::post(self.all()), Some(lease), bound)
            .await
    }

    /// Replaces the Lease under the `resourceVersion` and uid that `lease` carries. Returns what was stored.
    pub(in crate::leadership) async fn update(&self, lease: &Value, bound: Duration) -> Result<Value, RequestError> {
        self.send(Verb::Update, Request::put(self.one()), Some(lease), bound)
            .await
    }

    /// Opens a watch that starts behind `version` and that the API server ends after `seconds`.
    pub(in crate::leadership) async fn watch(
        &self,
        version: &str,
        seconds: u64,
        bound: Duration,
    ) -> Result<impl futures::AsyncBufRead + Send + Unpin + use<>, RequestError> {
        let all = self.all();
        let url = format!(
            "{all}?watch=true&fieldSelector=metadata.name%3D{LEASE_NAME}&resourceVersion={version}&timeoutSeconds={seconds}"
        );
        let request = Request::get(url).body(Vec::new()).map_err(RequestError::refused)?;
        match tokio::time::timeout(bound, self.client.request_stream(request)).await {
            Ok(Ok(stream)) => Ok(Box::pin(stream)),
            Ok(Err(error)) => Err(RequestError::from_client(Verb::Watch, &error)),
            Err(_) => Err(timed_out(bound)),
        }
    }

    async fn send(
        &self,
        verb: Verb,
        request: http::request::Builder,
        body: Option<&Value>,
        bound: Duration,
    ) -> Result<Value, RequestError> {
        let body = body.map(ToString::to_string).unwrap_or_default().into_bytes();
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(RequestError::refused)?;
        match tokio::time::timeout(bound, self.client.request_text(request)).await {
            Ok(Ok(answer)) => serde_json::from_str(&answer)
                .map_err(|error| RequestError::unknown(format!("the answer is no JSON: {error}"))),
            Ok(Err(error)) => Err(RequestError::from_client(verb, &error)),
            Err(_) => Err(timed_out(bound)),
        }
    }

    fn all(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    fn one(&self) -> String {
        format!("{}/{LEASE_NAME}", self.all())
    }
}

fn timed_out(bound: Duration) -> RequestError {
    RequestError::unknown(format!("no answer within {bound:.1?}"))
}

/// Whether the connection itself could not be opened, so that nothing was sent.
fn never_connected(error: &kube::Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
            return error.is_connect();
        }
        source = error.source();
    }
    false
}

/// An error with its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
