//! Whether API servers reach the webhook: the leader asks for one resource at v1 each minute (decision W11).
//!
//! A firewall between API server and webhook, as private GKE clusters have, otherwise shows only to users.

use std::time::Duration;

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client};

use crate::api::GROUP;
use crate::telemetry::Metrics;

/// How often.
const EVERY: Duration = Duration::from_mins(1);

/// What one question came to.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Answer {
    /// A resource came back, converted.
    Reachable,
    /// The API server says that it can't convert; its words.
    Unreachable(String),
    /// There is no resource that would need conversion.
    Nothing,
    /// The question itself failed, which says nothing of the webhook.
    Unknown(String),
}

/// Asks until it is dropped; then the metric is absent again.
pub async fn watch(client: Client, metrics: Metrics) {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, "v1", "Materialize"));
    let api = Api::<DynamicObject>::all_with(client, &kind);
    let one = ListParams::default().limit(1);
    let shown = Shown(metrics);
    loop {
        let answer = judge(api.list(&one).await.map(|list| list.items.len()));
        match &answer {
            Answer::Reachable => shown.0.set_webhook_reachable(Some(true)),
            Answer::Nothing => shown.0.set_webhook_reachable(None),
            Answer::Unreachable(error) => {
                shown.0.set_webhook_reachable(Some(false));
                tracing::error!(
                    error,
                    "the API server can't reach the webhook; version v1 fails for everybody"
                );
            }
            Answer::Unknown(error) => tracing::debug!(error, "can't ask for a resource at v1"),
        }
        tokio::time::sleep(EVERY).await;
    }
}

fn judge(listed: Result<usize, kube::Error>) -> Answer {
    match listed {
        Ok(0) => Answer::Nothing,
        Ok(_) => Answer::Reachable,
        Err(kube::Error::Api(status)) if status.message.contains("conversion webhook for ") => {
            Answer::Unreachable(status.message.clone())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Answer::Nothing,
        Err(error) => Answer::Unknown(error.to_string()),
    }
}

/// Takes the metric away when the term ends.
struct Shown(Metrics);

// === impl Shown ===

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.set_webhook_reachable(None);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;
    use crate::clock::Clock;

    fn client(code: u16, body: &Value) -> Client {
        let body = body.to_string();
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path_and_query().map(ToString::to_string);
            assert_eq!(
                path.as_deref(),
                Some("/apis/materialize.cloud/v1/materializes?&limit=1")
            );
            let response = Response::builder()
                .status(code)
                .body(Body::from(body.clone().into_bytes()));
            std::future::ready(Ok::<_, Infallible>(response.unwrap()))
        });
        Client::new(service, "default")
    }

    fn failure(code: u16, message: &str) -> Value {
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message, "reason": ""})
    }

    fn list(names: &[&str]) -> Value {
        let items: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
        json!({"metadata": {}, "items": items})
    }

    #[tokio::test(start_paused = true)]
    async fn the_metric_follows_and_is_absent_where_nothing_is_known() {
        let refused = "conversion webhook for materialize.cloud/v1alpha1, Kind=Materialize failed: Post \
                       \"https://operator.materialize.svc:8001/convert?timeout=30s\": dial tcp 10.0.0.1:8001: i/o timeout";
        let cases = [
            (200, list(&["a"]), Some("1")),
            (500, failure(500, refused), Some("0")),
            (200, list(&[]), None),
            (404, failure(404, "not found"), None),
            (503, failure(503, "etcd is away"), None),
        ];
        for (code, body, expected) in cases {
            let metrics = Metrics::new(Clock::boottime()).unwrap();
            let mut watching = Box::pin(watch(client(code, &body), metrics.clone()));
            // Long enough for one question.
            let ended = tokio::time::timeout(EVERY / 2, &mut watching).await;
            assert!(ended.is_err());
            let shown = |metrics: &Metrics| {
                let text = metrics.render().unwrap();
                let line = text
                    .lines()
                    .find_map(|line| line.strip_prefix("orchestratord_webhook_reachable "));
                line.map(str::to_owned)
            };
            assert_eq!(shown(&metrics).as_deref(), expected, "{code} {body}");
            drop(watching);
            assert_eq!(shown(&metrics), None, "the term has ended");
        }
    }
}
