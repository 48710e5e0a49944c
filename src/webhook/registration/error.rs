//! Why a CRD could not be registered.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Why a CRD could not be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// The API server refuses the definition itself (400 or 422): trying again can't help.
    #[error("the API server refuses the CRD {name}; if --additional-crd-columns is set, check it")]
    Rejected {
        /// Name of the CRD.
        name: String,
        /// The API server's answer.
        #[source]
        source: kube::Error,
    },
    /// The API server could not be reached, was overloaded, or did not permit the request.
    #[error("the CRD {name} can't be read or written")]
    Unavailable {
        /// Name of the CRD.
        name: String,
        /// What happened.
        #[source]
        source: kube::Error,
    },
    /// The CRD was written, and the watch for its establishment failed.
    #[error("the CRD {name} can't be watched")]
    Watch {
        /// Name of the CRD.
        name: String,
        /// What happened.
        #[source]
        source: kube::runtime::wait::Error,
    },
    /// The CRD was written, and the API server does not serve it.
    #[error("the CRD {name} is not established: {reason}")]
    NotEstablished {
        /// Name of the CRD.
        name: String,
        /// What the CRD's conditions say.
        reason: String,
    },
}

// === impl RegistrationError ===

impl RegistrationError {
    /// Whether trying again is pointless, so that start-up ends with exit code 1 (decision W8).
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Rejected { .. })
    }

    /// Sorts an error of the client by what it means for start-up.
    pub(super) fn from_kube(name: &str, source: kube::Error) -> Self {
        let name = name.to_owned();
        match &source {
            kube::Error::Api(status) if matches!(status.code, 400 | 422) => Self::Rejected { name, source },
            _ => Self::Unavailable { name, source },
        }
    }

    /// Names the condition that keeps `live` from being established.
    pub(super) fn not_established(name: &str, live: Option<&CustomResourceDefinition>) -> Self {
        let conditions = live
            .and_then(|live| live.status.as_ref())
            .and_then(|status| status.conditions.as_deref())
            .unwrap_or_default();
        let refused = conditions
            .iter()
            .filter(|condition| condition.status == "False")
            .map(|condition| {
                let message = condition.message.as_deref().unwrap_or("no message");
                format!("{}: {message}", condition.type_)
            })
            .collect::<Vec<_>>();
        let reason = match (live, refused.is_empty()) {
            (None, _) => "it was deleted".to_owned(),
            (Some(_), true) => "the API server has not accepted it yet".to_owned(),
            (Some(_), false) => refused.join("; "),
        };
        Self::NotEstablished {
            name: name.to_owned(),
            reason,
        }
    }
}
