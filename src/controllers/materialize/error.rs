//! Why a pass failed.

use crate::controllers::failure;
use crate::controllers::materialize::build::BuildError;
use crate::kubernetes;

/// Why a pass over one `Materialize` failed. The text becomes the note of an event on the resource.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An object could not be read, applied or deleted.
    #[error(transparent)]
    Kubernetes(#[from] kubernetes::Error),
    /// A request for or about the resource itself failed.
    #[error("can't {verb}")]
    Request {
        /// What was to be done, with the object.
        verb: &'static str,
        /// Why it failed.
        #[source]
        source: Box<kube::Error>,
    },
    /// The objects can't be generated from this spec.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The user has to repair something; the condition `Stalled` says the same.
    #[error("{0}")]
    Stalled(String),
    /// The rollout failed; the condition `UpToDate` says the same, or environmentd is asked again.
    #[error("{0}")]
    Rollout(String),
    /// The resource has changed since this pass began: nothing is deleted on an old view of it (decision R11).
    #[error("the Materialize has changed since it was read")]
    Outdated,
    /// The pass panicked: a fault of this program, confined to this resource (decision L11).
    #[error("internal error: the pass panicked: {0}; please report this")]
    Panicked(String),
    /// The resource is not as the API server delivers one: a fault of this program.
    #[error("internal error: {0}; please report this")]
    Internal(&'static str),
}

// === impl Error ===

impl Error {
    /// Wraps the error of a request about the resource itself.
    pub(super) fn request(verb: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Error::Request {
            verb,
            source: Box::new(source),
        }
    }

    /// The client's error, if a request failed.
    fn cause(&self) -> Option<&kube::Error> {
        match self {
            Error::Kubernetes(error) => error.request(),
            Error::Request { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Whether this only says that somebody else was faster, or that this replica does not lead any more: no event,
    /// no failure of the object (decision O1).
    pub fn is_nobodys_fault(&self) -> bool {
        matches!(self, Error::Outdated) || self.cause().is_some_and(failure::is_nobodys_fault)
    }

    /// Whether the API server judged an object and refused it: trying again as it is won't help.
    pub fn is_rejection(&self) -> bool {
        self.cause().is_some_and(failure::is_rejection)
    }

    /// This error and its causes in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            let cause = error.to_string();
            if !text.ends_with(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
            source = error.source();
        }
        text
    }
}
