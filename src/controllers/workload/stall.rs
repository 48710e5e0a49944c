//! What keeps a resource from being applied, as its condition `Stalled` says it (decision R5). No I/O.

use super::error::Error;
use crate::controllers::failure;

/// What keeps a Balancer or Console from being what its spec says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::controllers) enum Stall {
    /// It is not clear where connections go.
    #[error("{0}: set exactly one of staticRouting and fronteggRouting, of which only staticRouting works yet")]
    InvalidRouting(String),
    /// No certificate can be made of these settings.
    #[error("{0}")]
    InvalidCertificateSpec(String),
    /// A Certificate is wanted, and there is no such kind.
    #[error(
        "a certificate is configured, but cert-manager is not installed: install it, or remove issuerRef from the \
         certificate's settings and from --default-certificate-specs"
    )]
    CertManagerNotInstalled,
    /// The user's `ConfigMap` is missing: new pods can't start.
    #[error("configmapName: the ConfigMap {name} does not exist; create it with the key {key}")]
    ConfigMapNotFound {
        /// Its name.
        name: String,
        /// The key that it has to have.
        key: &'static str,
    },
    /// The user's `ConfigMap` has not the key that is mounted: new pods can't start.
    #[error("configmapName: the ConfigMap {name} has no key {key}; add it")]
    ConfigMapKeyNotFound {
        /// Its name.
        name: String,
        /// The key that it has to have.
        key: &'static str,
    },
    /// A Deployment of an older operator whose pods can't be handed over.
    #[error(
        "the Deployment {deployment} selects its pods by {label}={old}, which must become {label}={new}: a selector \
         can't be changed and its pods can't carry both; delete the Deployment, and it is made anew"
    )]
    SelectorConflict {
        /// Name of the Deployment.
        deployment: String,
        /// The label.
        label: String,
        /// Its value in the selector that is there.
        old: String,
        /// Its value in the selector that is wanted.
        new: String,
    },
    /// The API server, or an admission webhook, judged an object and refused it.
    #[error("{0}")]
    Rejected(String),
    /// An admission webhook could not be asked, such as that of a cert-manager that is starting.
    #[error("{0}")]
    AdmissionWebhookFailed(String),
}

// === impl Stall ===

impl Stall {
    /// The reason of the condition.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::InvalidRouting(_) => "InvalidRouting",
            Self::InvalidCertificateSpec(_) => "InvalidCertificateSpec",
            Self::CertManagerNotInstalled => "CertManagerNotInstalled",
            Self::ConfigMapNotFound { .. } => "ConfigMapNotFound",
            Self::ConfigMapKeyNotFound { .. } => "ConfigMapKeyNotFound",
            Self::SelectorConflict { .. } => "SelectorConflict",
            Self::Rejected(_) => "Rejected",
            Self::AdmissionWebhookFailed(_) => "AdmissionWebhookFailed",
        }
    }

    /// Whether it may end without any event that starts a pass: then the operator looks again soon.
    pub(super) fn may_end_unseen(&self) -> bool {
        match self {
            Self::CertManagerNotInstalled
            | Self::ConfigMapNotFound { .. }
            | Self::ConfigMapKeyNotFound { .. }
            | Self::AdmissionWebhookFailed(_) => true,
            Self::InvalidRouting(_)
            | Self::InvalidCertificateSpec(_)
            | Self::SelectorConflict { .. }
            | Self::Rejected(_) => false,
        }
    }

    /// What it means that an object could not be applied; `None` if that is no judgement about the object.
    pub(super) fn of_apply(error: &Error, is_certificate: bool) -> Option<Self> {
        let cause = error.cause()?;
        let text = || failure::chain(error);
        match cause {
            kube::Error::Api(status) if status.code == 404 && is_certificate => Some(Self::CertManagerNotInstalled),
            cause if failure::is_rejection(cause) => Some(Self::Rejected(text())),
            cause if failure::is_silent_webhook(cause) => Some(Self::AdmissionWebhookFailed(text())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn failed(code: u16, reason: &str, message: &str) -> Error {
        Error::request("apply it")(kube::Error::Api(Box::new(
            Status::failure(message, reason).with_code(code),
        )))
    }

    #[test]
    fn a_refused_object_stalls_with_the_text_of_the_api_server() {
        let error = failed(422, "Invalid", "spec.replicas: Invalid value: -1");
        let stall = Stall::of_apply(&error, false);
        assert!(
            matches!(&stall, Some(Stall::Rejected(text)) if text.contains("spec.replicas: Invalid value: -1")),
            "{stall:?}"
        );
    }

    #[test]
    fn a_missing_kind_of_certificates_means_that_cert_manager_is_missing() {
        let error = failed(404, "NotFound", "the server could not find the requested resource");
        assert_eq!(Stall::of_apply(&error, true), Some(Stall::CertManagerNotInstalled));
        assert_eq!(
            Stall::of_apply(&error, false),
            None,
            "a namespace that is gone, for example"
        );
    }

    #[test]
    fn a_silent_webhook_is_named_and_asked_again() {
        let error = failed(
            500,
            "InternalError",
            "failed calling webhook \"webhook.cert-manager.io\": refused",
        );
        let stall = Stall::of_apply(&error, true);
        assert!(
            matches!(&stall, Some(stall @ Stall::AdmissionWebhookFailed(text))
                if text.contains("webhook.cert-manager.io") && stall.may_end_unseen()),
            "{stall:?}"
        );
    }

    #[test]
    fn outages_and_conflicts_are_no_judgement() {
        for (code, reason) in [(409, "Conflict"), (429, "TooManyRequests"), (503, "ServiceUnavailable")] {
            assert_eq!(Stall::of_apply(&failed(code, reason, "later"), true), None, "{code}");
        }
    }
}
