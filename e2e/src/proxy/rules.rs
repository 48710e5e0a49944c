//! Which requests something happens to, and what.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

/// What a rule may look at.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// `GET`, `PUT`, ….
    pub(crate) method: String,
    /// Path and query.
    pub(crate) uri: String,
}

/// Chooses requests.
pub(crate) type Matcher = fn(&Target) -> bool;

/// What the proxy answers by itself.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// Header lines without line ends.
    pub(crate) headers: Vec<String>,
    /// The body.
    pub(crate) body: String,
}

/// What happens to a request.
#[derive(Clone)]
pub(crate) enum Fault {
    /// It is taken and never answered; the API server does not see it. Answers that have begun fall silent.
    Swallow,
    /// Only the head of its answer comes, as from a watch that has died without a word. Answers that have begun fall silent.
    Mute,
    /// The connection is reset; the API server does not see it.
    Reset,
    /// It is passed on only after this time, even if the client has given up meanwhile.
    Delay(Duration),
    /// It is passed on at once; its answer comes only after this time.
    DelayAnswer(Duration),
    /// It is passed on; instead of its answer the connection is reset.
    DropAnswer,
    /// The proxy answers; the API server does not see it.
    Answer(Answer),
    /// The body of its answer is replaced by what this makes of it.
    Rewrite(Arc<dyn Fn(Value) -> String + Send + Sync>),
    /// This is done before it is passed on.
    Meanwhile(Arc<dyn Fn() + Send + Sync>),
}

/// A fault for the requests that match.
pub(super) struct Rule {
    matcher: Matcher,
    fault: Fault,
    times: Option<u64>,
}

/// Every request about the operator's Lease.
pub(crate) fn lease(target: &Target) -> bool {
    target.uri.starts_with("/apis/coordination.k8s.io/")
}

/// What writes the Lease.
pub(crate) fn lease_writes(target: &Target) -> bool {
    lease(target) && target.method != "GET"
}

/// Every watch.
pub(crate) fn watches(target: &Target) -> bool {
    target.uri.contains("watch=true") || target.uri.contains("watch=1")
}

// === impl Target ===

impl Target {
    /// Whether it can change something.
    pub(crate) fn is_mutating(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }
}

// === impl Fault ===

impl Fault {
    /// A failure as the API server tells it: a Status of this code and reason.
    pub(crate) fn status(status: u16, reason: &str, headers: &[&str]) -> Self {
        let body = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("{reason}, says the network of the scenario"), "reason": reason, "code": status,
        });
        Self::Answer(Answer {
            status,
            headers: headers.iter().map(|line| (*line).to_owned()).collect(),
            body: body.to_string(),
        })
    }

    /// For the log.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Swallow => "swallow",
            Self::Mute => "mute",
            Self::Reset => "reset",
            Self::Delay(_) => "delay",
            Self::DelayAnswer(_) => "delay answer",
            Self::DropAnswer => "drop answer",
            Self::Answer(_) => "answer",
            Self::Rewrite(_) => "rewrite",
            Self::Meanwhile(_) => "meanwhile",
        }
    }
}

// === impl Rule ===

impl Rule {
    pub(super) fn new(matcher: Matcher, fault: Fault, times: Option<u64>) -> Self {
        Self { matcher, fault, times }
    }

    /// Its fault, if it is about this request and not used up.
    pub(super) fn apply(&mut self, target: &Target) -> Option<Fault> {
        if !(self.matcher)(target) {
            return None;
        }
        if let Some(times) = &mut self.times {
            *times = times.checked_sub(1)?;
        }
        Some(self.fault.clone())
    }

    /// Whether it silences an answer that has begun.
    pub(super) fn silences(&self, target: &Target) -> bool {
        matches!(self.fault, Fault::Swallow | Fault::Mute) && self.times.is_none() && (self.matcher)(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put() -> Target {
        Target {
            method: "PUT".to_owned(),
            uri: "/apis/coordination.k8s.io/v1/namespaces/a/leases/orchestratord".to_owned(),
        }
    }

    #[test]
    fn a_rule_that_is_used_up_lets_requests_pass() {
        let mut rule = Rule::new(lease_writes, Fault::Reset, Some(2));
        assert!(rule.apply(&put()).is_some());
        assert!(rule.apply(&put()).is_some());
        assert!(rule.apply(&put()).is_none());
    }

    #[test]
    fn a_read_is_no_write_of_the_lease() {
        let mut rule = Rule::new(lease_writes, Fault::Reset, None);
        let read = Target {
            method: "GET".to_owned(),
            ..put()
        };
        assert!(rule.apply(&read).is_none());
        assert!(rule.apply(&put()).is_some());
    }

    #[test]
    fn only_swallowing_without_end_silences_a_watch() {
        assert!(Rule::new(lease, Fault::Swallow, None).silences(&put()));
        assert!(!Rule::new(lease, Fault::Swallow, Some(1)).silences(&put()));
        assert!(!Rule::new(lease, Fault::Reset, None).silences(&put()));
    }
}
