//! What can be wrong with a request to environmentd, one variant for each.

use std::error::Error as _;
use std::time::Duration;

/// Why a request to environmentd has no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The address can't be made into a request. Names or ports of the resource are unusable.
    #[error("the address {0:?} can't be used")]
    Address(String),
    /// No connection, or it broke before the answer began.
    #[error("environmentd can't be reached: {0}")]
    Unreachable(String),
    /// No complete answer within the time-out.
    #[error("environmentd did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The login was refused.
    #[error("environmentd refused the login of mz_system with HTTP status {0}")]
    LoginRefused(u16),
    /// The answer is a redirect. Something other than environmentd listens there.
    #[error("environmentd answered with a redirect (HTTP status {0}), which is not followed")]
    Redirected(u16),
    /// Another HTTP status than the call allows, with the message that came with it.
    #[error("environmentd answered HTTP status {code}{}", detail(.message))]
    Status {
        /// The HTTP status.
        code: u16,
        /// The message in the body, empty if there was none.
        message: String,
    },
    /// environmentd understood the call and refuses, with its own words.
    #[error("environmentd refused: {0}")]
    Refused(String),
    /// The connection ended in the middle of the body.
    #[error("the answer of environmentd ends in the middle: {0}")]
    Truncated(String),
    /// The body is larger than any answer of the API.
    #[error("the answer of environmentd is larger than {0} bytes")]
    TooLarge(usize),
    /// The body is a web page. A proxy or another server answered.
    #[error("environmentd answered with a web page instead of JSON: another server may listen on its port")]
    WebPage,
    /// The body is not what the API answers.
    #[error("the answer of environmentd makes no sense: {0}")]
    Unreadable(String),
}

fn detail(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    }
}

// === impl Error ===

impl Error {
    /// Whether the call was answered by something that does not speak the leader API. Everything else may pass by
    /// itself: environmentd restarts, catches up, or gets its password.
    pub fn is_unreadable(&self) -> bool {
        matches!(
            self,
            Error::TooLarge(_) | Error::WebPage | Error::Unreadable(_) | Error::Address(_)
        )
    }

    /// Sorts an error of the HTTP library that came before the body.
    pub(super) fn sending(error: &reqwest::Error, timeout: Duration) -> Self {
        if error.is_timeout() {
            Error::TimedOut(timeout)
        } else {
            Error::Unreachable(causes(error))
        }
    }

    /// Sorts an error of the HTTP library that came while the body was read.
    pub(super) fn receiving(error: &reqwest::Error, timeout: Duration) -> Self {
        if error.is_timeout() {
            Error::TimedOut(timeout)
        } else {
            Error::Truncated(causes(error))
        }
    }
}

/// The innermost cause: the outer ones repeat the address.
fn causes(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    let mut next = error.source();
    while let Some(cause) = next {
        innermost = cause;
        next = cause.source();
    }
    innermost.to_string()
}
