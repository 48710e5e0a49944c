//! What the failures of passes have in common: whose fault they are, and how they are told.

use std::any::Any;

use crate::leadership;

/// Whether this only says that somebody else was faster, or that this replica does not lead any more: no event, no
/// failure of the object (decision O1).
pub(in crate::controllers) fn is_nobodys_fault(error: &kube::Error) -> bool {
    let conflict = matches!(error, kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict");
    conflict || leadership::is_refused(error)
}

/// Whether the API server judged an object and refused it: trying again as it is won't help.
pub(in crate::controllers) fn is_rejection(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 400 | 403 | 413 | 422))
}

/// Whether the API server could not ask an admission webhook what it thinks of an object.
pub(in crate::controllers) fn is_silent_webhook(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code >= 500 && status.message.contains("failed calling webhook"))
}

/// An error and its causes in one line. An answer of the API server is told in its own words alone.
pub(in crate::controllers) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = words_of(error);
    let mut source = error.source();
    while let Some(error) = source {
        let cause = words_of(error);
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        // What lies behind an answer repeats it.
        let is_answer = matches!(error.downcast_ref(), Some(kube::Error::Api(_)));
        source = error.source().filter(|_| !is_answer);
    }
    text
}

fn words_of(error: &(dyn std::error::Error + 'static)) -> String {
    match error.downcast_ref() {
        Some(kube::Error::Api(status)) if !status.message.is_empty() => status.message.clone(),
        _ => error.to_string(),
    }
}

/// What a panic said.
pub(in crate::controllers) fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn answer(code: u16, reason: &str, message: &str) -> kube::Error {
        kube::Error::Api(Box::new(Status::failure(message, reason).with_code(code)))
    }

    #[test]
    fn conflicts_are_nobodys_fault_and_existing_objects_are_not_conflicts() {
        assert!(is_nobodys_fault(&answer(409, "Conflict", "modified")));
        assert!(!is_nobodys_fault(&answer(409, "AlreadyExists", "exists")));
        assert!(!is_nobodys_fault(&answer(500, "InternalError", "broken")));
    }

    #[test]
    fn judgements_are_told_from_outages() {
        for code in [400, 403, 413, 422] {
            assert!(is_rejection(&answer(code, "Invalid", "no")), "{code}");
        }
        for code in [401, 404, 409, 429, 500, 503] {
            assert!(!is_rejection(&answer(code, "Else", "no")), "{code}");
        }
        let silent = "Internal error occurred: failed calling webhook \"webhook.cert-manager.io\": connection refused";
        assert!(is_silent_webhook(&answer(500, "InternalError", silent)));
        assert!(!is_silent_webhook(&answer(500, "InternalError", "etcd is slow")));
    }

    #[test]
    fn causes_are_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("can't apply it")]
        struct Outer(#[source] std::io::Error);
        assert_eq!(
            chain(&Outer(std::io::Error::other("refused"))),
            "can't apply it: refused"
        );
    }

    #[test]
    fn panics_speak() {
        assert_eq!(text_of(&"a"), "a");
        assert_eq!(text_of(&"b".to_owned()), "b");
        assert_eq!(text_of(&7_u8), "without a message");
    }
}
