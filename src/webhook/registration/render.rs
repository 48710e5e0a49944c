//! The CRDs as they are sent, and whether a live one already is like that.

use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceConversion, CustomResourceDefinition,
    CustomResourceDefinitionVersion, ServiceReference, WebhookClientConfig, WebhookConversion,
};

use super::bundle::{self, Plan};
use super::{Conversion, Options, provenance};
use crate::api::crds::{self, VPC_ENDPOINTS};
use crate::api::labels::ANNOTATION_REGISTRATION;
use crate::webhook::certificates::Authorities;

/// Path of the conversion webhook.
const PATH: &str = "/convert";

/// Name of the CRD of `Materialize`.
pub(super) const MATERIALIZES: &str = "materializes.materialize.cloud";

/// Names of all CRDs, in the order of their registration.
pub(super) const NAMES: [&str; 4] = [
    MATERIALIZES,
    "balancers.materialize.cloud",
    "consoles.materialize.cloud",
    VPC_ENDPOINTS,
];

/// The CRD with this name, one of [`NAMES`], complete and signed. `plan` is what the CRD of `Materialize` must say of
/// certificate authorities if there is a webhook.
pub(super) fn crd(
    name: &str,
    options: &Options,
    plan: &Plan,
    live: Option<&CustomResourceDefinition>,
) -> CustomResourceDefinition {
    let mut crd = match name {
        MATERIALIZES => crds::materializes(options.conversion.is_some(), &options.additional_columns),
        VPC_ENDPOINTS => crds::vpc_endpoints(),
        "balancers.materialize.cloud" => crds::balancers(),
        _ => crds::consoles(),
    };
    if name == MATERIALIZES
        && let Some(conversion) = &options.conversion
    {
        // Set here, on the merged definition: merging versions in kube keeps no conversion.
        crd.spec.conversion = Some(stanza(conversion, ca_bundle(plan, live)));
        plan.ledger.write(&mut crd);
    }
    provenance::sign(&mut crd, &options.registrant);
    crd
}

/// Another operator's definition as it stands, with the planned authorities.
///
/// Applied in full: what a manager leaves out of an apply is removed, and this operator's manager may own all of it.
pub(super) fn with_authorities(live: &CustomResourceDefinition, plan: &Plan) -> CustomResourceDefinition {
    let mut crd = CustomResourceDefinition {
        status: None,
        ..live.clone()
    };
    let annotations = crd.metadata.annotations.take();
    crd.metadata = kube::api::ObjectMeta {
        name: crd.metadata.name.take(),
        resource_version: crd.metadata.resource_version.take(),
        annotations: annotations.map(|mut annotations| {
            annotations.retain(|key, _| key == ANNOTATION_REGISTRATION);
            annotations
        }),
        ..kube::api::ObjectMeta::default()
    };
    let conversion = crd.spec.conversion.as_mut();
    let webhook = conversion.and_then(|conversion| conversion.webhook.as_mut());
    if let Some(client_config) = webhook.and_then(|webhook| webhook.client_config.as_mut()) {
        client_config.ca_bundle = ca_bundle(plan, Some(live));
    }
    plan.ledger.write(&mut crd);
    crd
}

/// The planned authorities as bytes; those of `live` where they mean the same.
fn ca_bundle(plan: &Plan, live: Option<&CustomResourceDefinition>) -> Option<ByteString> {
    match live.and_then(bundle::bytes) {
        Some(bytes) if !bytes.is_empty() && Authorities::from_pem_lossy(bytes) == plan.bundle => {
            Some(ByteString(bytes.to_vec()))
        }
        _ if plan.bundle.is_empty() => None,
        _ => Some(ByteString(plan.bundle.to_pem())),
    }
}

fn stanza(conversion: &Conversion, ca_bundle: Option<ByteString>) -> CustomResourceConversion {
    CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            conversion_review_versions: vec!["v1".to_owned()],
            client_config: Some(WebhookClientConfig {
                ca_bundle,
                service: Some(ServiceReference {
                    name: conversion.service_name.clone(),
                    namespace: conversion.service_namespace.clone(),
                    path: Some(PATH.to_owned()),
                    port: Some(i32::from(conversion.service_port)),
                }),
                url: None,
            }),
        }),
    }
}

/// The Service of the webhook that `live` names, if it names one.
pub(super) fn service(live: &CustomResourceDefinition) -> Option<&ServiceReference> {
    let webhook = webhook(live.spec.conversion.as_ref())?.webhook.as_ref()?;
    webhook.client_config.as_ref()?.service.as_ref()
}

/// Whether `live` has a webhook.
pub(super) fn has_webhook(live: &CustomResourceDefinition) -> bool {
    webhook(live.spec.conversion.as_ref()).is_some()
}

/// Whether the webhook of `live` is this one.
pub(super) fn names_service(live: &CustomResourceDefinition, conversion: &Conversion) -> bool {
    service(live).is_some_and(|service| {
        service.name == conversion.service_name
            && service.namespace == conversion.service_namespace
            && service.path.as_deref() == Some(PATH)
            && service.port == Some(i32::from(conversion.service_port))
    })
}

/// Whether `live` says what `crd` says, leaving aside what the API server fills in.
pub(super) fn equal(live: &CustomResourceDefinition, crd: &CustomResourceDefinition) -> bool {
    let (live, ours) = (&live.spec, &crd.spec);
    live.group == ours.group
        && live.scope == ours.scope
        && live.names.kind == ours.names.kind
        && live.names.plural == ours.names.plural
        && live.names.singular == ours.names.singular
        && live.names.short_names.as_deref().unwrap_or_default()
            == ours.names.short_names.as_deref().unwrap_or_default()
        && webhook(live.conversion.as_ref()) == webhook(ours.conversion.as_ref())
        && live.versions.len() == ours.versions.len()
        && live
            .versions
            .iter()
            .zip(&ours.versions)
            .all(|(live, ours)| normal(live) == normal(ours))
}

/// The webhook of a conversion; the strategy `None` is the same as no conversion.
fn webhook(conversion: Option<&CustomResourceConversion>) -> Option<&CustomResourceConversion> {
    conversion.filter(|conversion| conversion.strategy != "None")
}

/// A version without the zero values that the API server does not keep.
fn normal(version: &CustomResourceDefinitionVersion) -> CustomResourceDefinitionVersion {
    let mut version = version.clone();
    version.additional_printer_columns = version
        .additional_printer_columns
        .filter(|columns| !columns.is_empty())
        .map(|columns| columns.into_iter().map(normal_column).collect());
    version
}

fn normal_column(column: CustomResourceColumnDefinition) -> CustomResourceColumnDefinition {
    let not_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
    CustomResourceColumnDefinition {
        description: not_empty(column.description),
        format: not_empty(column.format),
        priority: column.priority.filter(|priority| *priority != 0),
        ..column
    }
}
