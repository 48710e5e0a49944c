//! The CRDs as they are sent, and whether a live one already is like that.

use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceConversion, CustomResourceDefinition,
    CustomResourceDefinitionVersion, ServiceReference, WebhookClientConfig, WebhookConversion,
};

use super::{Conversion, Options, provenance};
use crate::api::crds;

/// Path of the conversion webhook.
const PATH: &str = "/convert";

/// All CRDs, complete and signed.
pub(super) fn crds(options: &Options) -> Vec<CustomResourceDefinition> {
    let mut materializes = crds::materializes(options.conversion.is_some(), &options.additional_columns);
    // Set here, on the merged definition: merging versions in kube keeps no conversion.
    materializes.spec.conversion = options.conversion.as_ref().map(stanza);
    let mut all = vec![materializes, crds::balancers(), crds::consoles(), crds::vpc_endpoints()];
    for crd in &mut all {
        provenance::sign(crd, &options.registrant);
    }
    all
}

fn stanza(conversion: &Conversion) -> CustomResourceConversion {
    CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            conversion_review_versions: vec!["v1".to_owned()],
            client_config: Some(WebhookClientConfig {
                ca_bundle: Some(ByteString(conversion.ca_bundle.clone())),
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
