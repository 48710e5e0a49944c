//! Snapshots in `src/api/testdata`, which reviewers read against docs/reference/materialize-resource.md, and rules that
//! hold for every schema. `UPDATE_TESTDATA=1 cargo test -p orchestratord api::crds` rewrites the snapshots.

use std::path::Path;

use serde_json::{Value, json};

use super::*;

fn check(name: &str, crd: &CustomResourceDefinition) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/api/testdata")
        .join(name);
    let rendered = serde_saphyr::to_string(&without_descriptions(crd)).expect("CRDs are YAML");
    if std::env::var_os("UPDATE_TESTDATA").is_some() {
        std::fs::write(&path, &rendered).expect("testdata can be written");
    }
    let expected = std::fs::read_to_string(&path).expect("the snapshot exists");
    assert!(
        rendered == expected,
        "{name} differs from what is generated; run this test with UPDATE_TESTDATA=1 and review the difference"
    );
}

/// The descriptions of Kubernetes' own types are long, and change with the library; they are no contract.
fn without_descriptions(crd: &CustomResourceDefinition) -> Value {
    fn strip(schema: &mut Value) {
        let Some(schema) = schema.as_object_mut() else {
            return;
        };
        schema.remove("description");
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.values_mut().for_each(strip);
        }
        for key in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get_mut(key) {
                strip(inner);
            }
        }
    }
    let mut value = serde_json::to_value(crd).expect("CRDs are JSON");
    for version in value["spec"]["versions"].as_array_mut().expect("versions are a list") {
        strip(&mut version["schema"]["openAPIV3Schema"]);
    }
    value
}

fn column(name: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: "string".to_owned(),
        json_path: ".metadata.name".to_owned(),
        ..CustomResourceColumnDefinition::default()
    }
}

fn versions(crd: &CustomResourceDefinition) -> Vec<(&str, bool, bool)> {
    crd.spec
        .versions
        .iter()
        .map(|version| (version.name.as_str(), version.served, version.storage))
        .collect()
}

fn columns(crd: &CustomResourceDefinition, version: usize) -> Vec<&str> {
    crd.spec.versions[version]
        .additional_printer_columns
        .iter()
        .flatten()
        .map(|column| column.name.as_str())
        .collect()
}

#[test]
fn snapshots() {
    check("materializes.yaml", &materializes(true, &[]));
    check("balancers.yaml", &balancers());
    check("consoles.yaml", &consoles());
    check("vpcendpoints.yaml", &vpc_endpoints());
}

#[test]
fn names() {
    let crd = materializes(true, &[]);
    assert_eq!(crd.metadata.name.as_deref(), Some("materializes.materialize.cloud"));
    assert_eq!(crd.spec.names.short_names, Some(vec!["mzs".to_owned()]));
    assert_eq!(
        balancers().metadata.name.as_deref(),
        Some("balancers.materialize.cloud")
    );
    assert_eq!(consoles().metadata.name.as_deref(), Some("consoles.materialize.cloud"));
    assert_eq!(
        vpc_endpoints().metadata.name.as_deref(),
        Some("vpcendpoints.materialize.cloud")
    );
}

#[test]
fn the_stored_version_is_v1alpha1_with_and_without_v1() {
    assert_eq!(versions(&materializes(false, &[])), [("v1alpha1", true, true)]);
    assert_eq!(
        versions(&materializes(true, &[])),
        [("v1", true, false), ("v1alpha1", true, true)]
    );
}

#[test]
fn additional_columns_go_before_those_of_the_first_version_only() {
    let defaults = [
        "Status",
        "Generation",
        "ImageRefRunning",
        "ImageRefToDeploy",
        "UpToDate",
        "Age",
    ];
    let extended = [&["First", "Second"][..], &defaults].concat();
    let additional = [column("First"), column("Second")];

    let both = materializes(true, &additional);
    assert_eq!(columns(&both, 0), extended);
    assert_eq!(columns(&both, 1), defaults);
    assert_eq!(columns(&materializes(false, &additional), 0), extended);
}

/// Every schema node of every CRD, with its path.
fn nodes(crd: &CustomResourceDefinition) -> Vec<(String, Value)> {
    fn collect(path: String, schema: &Value, nodes: &mut Vec<(String, Value)>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            collect(format!("{path}.{name}"), property, nodes);
        }
        for key in ["items", "additionalProperties"] {
            if schema[key].is_object() {
                collect(format!("{path}[]"), &schema[key], nodes);
            }
        }
        nodes.push((path, schema.clone()));
    }
    let mut nodes = Vec::new();
    let value = serde_json::to_value(crd).expect("CRDs are JSON");
    for version in value["spec"]["versions"].as_array().expect("versions are a list") {
        let name = version["name"].as_str().expect("versions have names");
        collect(name.to_owned(), &version["schema"]["openAPIV3Schema"], &mut nodes);
    }
    nodes
}

#[test]
fn schemas_are_structural_and_use_formats_that_the_api_server_knows() {
    for crd in [materializes(true, &[]), balancers(), consoles(), vpc_endpoints()] {
        for (path, node) in nodes(&crd) {
            let int_or_string = node["x-kubernetes-int-or-string"] == json!(true);
            assert!(node["type"].is_string() || int_or_string, "{path} has no type: {node}");
            for key in ["oneOf", "allOf", "not", "$ref"] {
                assert!(node[key].is_null(), "{path} has {key}");
            }
            assert!(node["anyOf"].is_null() || int_or_string, "{path} has anyOf");
            if let Some(format) = node["format"].as_str() {
                assert!(
                    ["int32", "int64", "uuid", "date-time"].contains(&format),
                    "{path} has format {format}"
                );
            }
            let open = node["x-kubernetes-preserve-unknown-fields"] == json!(true);
            assert_eq!(
                open,
                ["v1.spec", "v1.status"].contains(&path.as_str()) && crd == vpc_endpoints(),
                "{path}"
            );
        }
    }
}

#[test]
fn optional_fields_without_a_default_accept_null_at_any_depth() {
    for crd in [materializes(true, &[]), balancers(), consoles()] {
        let mut checked = 0;
        for (path, node) in nodes(&crd) {
            let Some((_, inside)) = path.split_once('.') else {
                continue;
            };
            let own_types = !inside.starts_with("status.conditions");
            for (name, property) in node["properties"].as_object().into_iter().flatten() {
                let required = node["required"]
                    .as_array()
                    .is_some_and(|required| required.contains(&json!(name)));
                let has_default = !property["default"].is_null();
                let accepts_null = property["nullable"] == json!(true);
                if own_types {
                    assert_eq!(accepts_null, !required && !has_default, "{path}.{name}");
                    checked += 1;
                }
                let is_enum = property["enum"].is_array();
                assert!(
                    !(is_enum && accepts_null),
                    "{path}.{name}: null is never a member of an enum"
                );
            }
        }
        assert!(checked > 20, "the paths above exist");
    }
}

#[test]
fn an_optional_enum_is_a_pattern_of_its_members() {
    let nodes = nodes(&balancers());
    let (_, node) = nodes
        .iter()
        .find(|(path, _)| path == "v1alpha1.spec.externalCertificateSpec.privateKeyAlgorithm")
        .expect("the field exists");
    assert_eq!(node["pattern"], "^(RSA|ECDSA|Ed25519)$");
}
