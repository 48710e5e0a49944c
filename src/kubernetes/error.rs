//! The errors of requests to the API server.

use std::fmt;

/// Why an object could not be read, applied or deleted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object to apply has no name: a fault of this program.
    #[error("can't apply a {kind} without a name")]
    Unnamed {
        /// Kind of the object.
        kind: String,
    },
    /// The object can't be written as JSON: a fault of this program.
    #[error("can't write {object} as JSON")]
    Serialize {
        /// The object.
        object: Box<ObjectName>,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The API server refused the request, or did not answer.
    #[error("can't {verb} {object}")]
    Request {
        /// What was to be done: `get`, `apply` or `delete`.
        verb: &'static str,
        /// The object.
        object: Box<ObjectName>,
        /// Why.
        #[source]
        source: kube::Error,
    },
}

/// Kind, namespace and name, for messages: `StatefulSet ns/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// Kind of the object.
    pub kind: String,
    /// Its namespace; none for cluster-wide kinds.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

// === impl Error ===

impl Error {
    /// The API server's status, if it answered: `code` 409 is a conflict, for example.
    pub fn status(&self) -> Option<&kube::core::Status> {
        match self {
            Self::Request {
                source: kube::Error::Api(status),
                ..
            } => Some(status),
            _ => None,
        }
    }

    /// The client's error, if a request was made.
    pub fn request(&self) -> Option<&kube::Error> {
        match self {
            Self::Request { source, .. } => Some(source),
            Self::Unnamed { .. } | Self::Serialize { .. } => None,
        }
    }
}

// === impl ObjectName ===

impl ObjectName {
    /// The name of an object that `api` reaches.
    pub(super) fn in_api<K>(api: &kube::Api<K>, name: &str) -> Self
    where
        K: kube::Resource,
        K::DynamicType: Default,
    {
        Self {
            kind: K::kind(&K::DynamicType::default()).into_owned(),
            namespace: api.namespace().map(str::to_owned),
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(formatter, "{} {namespace}/{}", self.kind, self.name),
            None => write!(formatter, "{} {}", self.kind, self.name),
        }
    }
}
