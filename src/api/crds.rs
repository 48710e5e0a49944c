//! The `CustomResourceDefinitions` as values: names, versions, columns and schemas, without a conversion stanza.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources, CustomResourceValidation, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use kube::api::ObjectMeta;

use super::{GROUP, v1, v1alpha1};

/// Name of the CRD of `VpcEndpoint`.
pub const VPC_ENDPOINTS: &str = "vpcendpoints.materialize.cloud";

/// The CRD of `Materialize`: `[v1, v1alpha1]` if `install_v1`, else `[v1alpha1]`, which is the stored version either way.
///
/// `additional_columns` go before the columns of the first version.
pub fn materializes(
    install_v1: bool,
    additional_columns: &[CustomResourceColumnDefinition],
) -> CustomResourceDefinition {
    let mut crd = derived::<v1alpha1::Materialize>();
    if install_v1 {
        let mut versions = derived::<v1::Materialize>().spec.versions;
        for version in &mut versions {
            version.storage = false;
        }
        versions.append(&mut crd.spec.versions);
        crd.spec.versions = versions;
    }
    if let Some(first) = crd.spec.versions.first_mut()
        && !additional_columns.is_empty()
    {
        let defaults = first.additional_printer_columns.take().unwrap_or_default();
        first.additional_printer_columns = Some([additional_columns.to_vec(), defaults].concat());
    }
    crd
}

/// The CRD of `Balancer`.
pub fn balancers() -> CustomResourceDefinition {
    derived::<v1alpha1::Balancer>()
}

/// The CRD of `Console`.
pub fn consoles() -> CustomResourceDefinition {
    derived::<v1alpha1::Console>()
}

/// The CRD as derived from the type, with a `spec` whose optional fields all accept null.
fn derived<T: CustomResourceExt>() -> CustomResourceDefinition {
    let mut crd = T::crd();
    for version in &mut crd.spec.versions {
        let schema = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut());
        let properties = schema.and_then(|schema| schema.properties.as_mut());
        if let Some(spec) = properties.and_then(|properties| properties.get_mut("spec")) {
            allow_nulls(spec);
        }
    }
    crd
}

/// Lets every optional field at or below `schema` be null: Terraform sends nulls for "not set", at any depth.
///
/// The derived schema lacks that inside Kubernetes' own types. An enum becomes a pattern: the API server never takes
/// null for a member of an enum, not even of one that lists it, and checks patterns on texts only. Fields with a
/// default stay as they are: the API server replaces their nulls by the default.
fn allow_nulls(schema: &mut JSONSchemaProps) {
    let required = schema.required.clone().unwrap_or_default();
    for (name, property) in schema.properties.iter_mut().flatten() {
        allow_nulls(property);
        if required.contains(name) || property.default.is_some() {
            continue;
        }
        property.nullable = Some(true);
        if let Some(values) = property.enum_.take() {
            let names: Vec<_> = values.iter().filter_map(|value| value.0.as_str()).collect();
            property.pattern = Some(format!("^({})$", names.join("|")));
        }
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        allow_nulls(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        allow_nulls(values);
    }
}

/// The CRD of `VpcEndpoint`, for clusters that have none: environmentd writes these objects, so every field of `spec`
/// and `status` is kept (decision W10).
pub fn vpc_endpoints() -> CustomResourceDefinition {
    let open = || JSONSchemaProps {
        type_: Some("object".to_owned()),
        nullable: Some(true),
        x_kubernetes_preserve_unknown_fields: Some(true),
        ..JSONSchemaProps::default()
    };
    let schema = JSONSchemaProps {
        description: Some("An AWS VPC endpoint that environmentd asks for.".to_owned()),
        type_: Some("object".to_owned()),
        properties: Some(
            [("spec".to_owned(), open()), ("status".to_owned(), open())]
                .into_iter()
                .collect(),
        ),
        ..JSONSchemaProps::default()
    };
    CustomResourceDefinition {
        metadata: ObjectMeta {
            name: Some(VPC_ENDPOINTS.to_owned()),
            ..ObjectMeta::default()
        },
        spec: CustomResourceDefinitionSpec {
            group: GROUP.to_owned(),
            names: CustomResourceDefinitionNames {
                kind: "VpcEndpoint".to_owned(),
                plural: "vpcendpoints".to_owned(),
                singular: Some("vpcendpoint".to_owned()),
                ..CustomResourceDefinitionNames::default()
            },
            scope: "Namespaced".to_owned(),
            versions: vec![CustomResourceDefinitionVersion {
                name: "v1".to_owned(),
                served: true,
                storage: true,
                schema: Some(CustomResourceValidation {
                    open_api_v3_schema: Some(schema),
                }),
                subresources: Some(CustomResourceSubresources {
                    status: Some(CustomResourceSubresourceStatus(serde_json::json!({}))),
                    ..CustomResourceSubresources::default()
                }),
                ..CustomResourceDefinitionVersion::default()
            }],
            ..CustomResourceDefinitionSpec::default()
        },
        status: None,
    }
}

#[cfg(test)]
mod tests;
