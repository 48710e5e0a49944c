//! The `ServiceAccount` of environmentd and clusterd pods.

use k8s_openapi::api::core::v1::ServiceAccount;

use super::environment::Environment;
use crate::api::labels;
use crate::args::CloudProvider;
use crate::controllers::building::pod::non_empty;

/// The account, unless the resource names one that somebody else looks after.
pub fn build(environment: &Environment<'_>) -> Option<ServiceAccount> {
    let spec = environment.spec();
    if spec.service_account_name.is_some() {
        return None;
    }

    let mut annotations = spec.service_account_annotations.clone().unwrap_or_default();
    let cloud = &environment.config.cloud;
    if cloud.cloud_provider == CloudProvider::Aws
        && let Some(role) = spec
            .environmentd_iam_role_arn
            .as_ref()
            .or(cloud.environmentd_iam_role_arn.as_ref())
    {
        annotations.insert(labels::ANNOTATION_EKS_ROLE_ARN.to_owned(), role.clone());
    }

    let mut metadata = environment.identity.metadata(environment.service_account_name());
    metadata.annotations = non_empty(&annotations);
    // The user's labels win.
    metadata
        .labels
        .get_or_insert_default()
        .extend(spec.service_account_labels.clone().unwrap_or_default());
    Some(ServiceAccount {
        metadata,
        ..ServiceAccount::default()
    })
}
