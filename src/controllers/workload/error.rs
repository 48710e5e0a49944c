//! Why a pass failed.

use crate::controllers::building::identity::IncompleteOwner;
use crate::controllers::failure;
use crate::kubernetes;

/// Why a pass over one Balancer or Console failed. The text becomes the note of an event on the resource.
#[derive(Debug, thiserror::Error)]
pub(in crate::controllers) enum Error {
    /// An object could not be read, applied or deleted.
    #[error(transparent)]
    Kubernetes(#[from] kubernetes::Error),
    /// Another request failed.
    #[error("can't {verb}")]
    Request {
        /// What was to be done, with the object.
        verb: &'static str,
        /// Why it failed.
        #[source]
        source: kube::Error,
    },
    /// The user has to repair something; the condition `Stalled` says the same.
    #[error("{0}")]
    Stalled(String),
    /// The pass panicked: a fault of this program, confined to this resource (decision L11).
    #[error("internal error: the pass panicked: {0}; please report this")]
    Panicked(String),
    /// The resource is not as the API server delivers one: a fault of this program.
    #[error("internal error: {0}; please report this")]
    Owner(#[from] IncompleteOwner),
}

// === impl Error ===

impl Error {
    /// Wraps the client's error.
    pub(super) fn request(verb: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Request { verb, source }
    }

    /// The client's error, if a request failed.
    pub(super) fn cause(&self) -> Option<&kube::Error> {
        match self {
            Self::Kubernetes(error) => error.request(),
            Self::Request { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Whether it says nothing about the resource (decision O1).
    pub(super) fn is_nobodys_fault(&self) -> bool {
        self.cause().is_some_and(failure::is_nobodys_fault)
    }
}
