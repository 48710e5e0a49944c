//! How a failure is told: one line that says what is wrong, and where it helps, what to do about it.

use std::io;

use anyhow::Error;

/// The text for a person: the chain of causes, and a hint for the causes that have a well known remedy.
pub(crate) fn describe(error: &Error) -> String {
    let mut text = format!("{error:#}");
    if let Some(hint) = hint(error, &text) {
        text.push_str("\n       ");
        text.push_str(hint);
    }
    text
}

/// What to do about a cause that can appear anywhere.
fn hint(error: &Error, text: &str) -> Option<&'static str> {
    let is = |kind: io::ErrorKind| {
        error
            .chain()
            .filter_map(|cause| cause.downcast_ref::<io::Error>())
            .any(|cause| cause.kind() == kind)
    };
    if is(io::ErrorKind::StorageFull)
        || is(io::ErrorKind::QuotaExceeded)
        || text.contains("no space left on device")
        || text.contains("No space left on device")
    {
        return Some(
            "The disk or the cluster's tmpfs is full: free space (a first build needs 8 GB below the cache folder and Go's own caches; \
             `cargo e2e down` frees the tmpfs under /var/lib/orchestratord-e2e), then run the same command again.",
        );
    }
    if text.contains("address already in use") || is(io::ErrorKind::AddrInUse) {
        return Some(
            "Another program has this port: end it, or choose another port; inside the cluster's own namespaces `cargo e2e down` ends whatever is left.",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_full_disk_says_what_to_free_however_deep_the_cause() {
        let error = Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull))
            .context("writing an image")
            .context("up");
        let text = describe(&error.unwrap_err());
        assert!(text.starts_with("up: writing an image: "), "{text}");
        assert!(text.contains("cargo e2e down"), "{text}");
    }

    #[test]
    fn an_error_without_a_known_remedy_is_one_line() {
        assert_eq!(
            describe(&anyhow::anyhow!("go is missing: install it")),
            "go is missing: install it"
        );
    }
}
