//! Vectors computed by hand: the JSON was written from docs/reference/materialize-resource.md and hashed by `sha256sum`.

use serde_json::{Value, json};

use super::*;

const MINIMAL_JSON: &str = concat!(
    r#"{"environmentdImageRef":"materialize/environmentd:v26.1.0","environmentdExtraArgs":null,"#,
    r#""environmentdExtraEnv":null,"environmentdConnectionRoleArn":null,"environmentdResourceRequirements":null,"#,
    r#""environmentdScratchVolumeStorageRequirement":null,"balancerdResourceRequirements":null,"#,
    r#""consoleResourceRequirements":null,"balancerdReplicas":null,"consoleReplicas":null,"serviceAccountName":null,"#,
    r#""serviceAccountAnnotations":null,"serviceAccountLabels":null,"podAnnotations":null,"podLabels":null,"#,
    r#""forcePromote":null,"forceRollout":"00000000-0000-0000-0000-000000000000","rolloutStrategy":"WaitUntilReady","#,
    r#""rolloutRequestTimeout":"24h","backendSecretName":"backend","authenticatorKind":"None","enableRbac":false,"#,
    r#""environmentId":"00000000-0000-0000-0000-000000000000","systemParameterConfigmapName":null,"#,
    r#""balancerdExternalCertificateSpec":null,"consoleExternalCertificateSpec":null,"internalCertificateSpec":null}"#,
);

const FULL_JSON: &str = concat!(
    r#"{"environmentdImageRef":"r/environmentd:v26.2.0","environmentdExtraArgs":["--b","--a"],"#,
    r#""environmentdExtraEnv":[{"name":"A","value":"x"},{"name":"B","valueFrom":{"secretKeyRef":{"key":"k","name":"s"}}}],"#,
    r#""environmentdConnectionRoleArn":"arn:c","environmentdResourceRequirements":{"limits":{"memory":"4Gi"},"#,
    r#""requests":{"cpu":"1","memory":"4095Mi"}},"environmentdScratchVolumeStorageRequirement":"5Gi","#,
    r#""balancerdResourceRequirements":null,"consoleResourceRequirements":null,"balancerdReplicas":null,"#,
    r#""consoleReplicas":null,"serviceAccountName":"sa","serviceAccountAnnotations":{"a":"1","b":"2"},"#,
    r#""serviceAccountLabels":{"l":"v"},"podAnnotations":{"pa":"1"},"podLabels":{"pl":"1"},"forcePromote":null,"#,
    r#""forceRollout":"00000000-0000-0000-0000-00000000000a","rolloutStrategy":"ManuallyPromote","#,
    r#""rolloutRequestTimeout":"90m","backendSecretName":"backend","authenticatorKind":"Sasl","enableRbac":true,"#,
    r#""environmentId":"6f1c1d9e-9a3b-4f0a-8f5e-0123456789ab","systemParameterConfigmapName":"params","#,
    r#""balancerdExternalCertificateSpec":null,"consoleExternalCertificateSpec":null,"#,
    r#""internalCertificateSpec":{"dnsNames":["d"],"duration":null,"renewBefore":null,"#,
    r#""issuerRef":{"kind":"ClusterIssuer","name":"i"},"secretTemplate":null,"privateKeyAlgorithm":"RSA"}}"#,
);

fn minimal() -> Value {
    json!({"environmentdImageRef": "materialize/environmentd:v26.1.0", "backendSecretName": "backend"})
}

/// Keys in no particular order, UUIDs in upper case, and every field that is not part of the hash.
fn full() -> Value {
    json!({
        "environmentId": "6F1C1D9E-9A3B-4F0A-8F5E-0123456789AB",
        "backendSecretName": "backend",
        "environmentdImageRef": "r/environmentd:v26.2.0",
        "environmentdExtraArgs": ["--b", "--a"],
        "environmentdExtraEnv": [
            {"value": "x", "name": "A"},
            {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": null}}, "name": "B", "value": null},
        ],
        "environmentdConnectionRoleArn": "arn:c",
        "environmentdResourceRequirements": {"requests": {"memory": "4095Mi", "cpu": "1"}, "limits": {"memory": "4Gi"}},
        "environmentdScratchVolumeStorageRequirement": "5Gi",
        "balancerdResourceRequirements": {"limits": {"memory": "1Gi"}},
        "consoleResourceRequirements": {"limits": {"memory": "1Gi"}},
        "balancerdReplicas": 3,
        "consoleReplicas": 4,
        "serviceAccountName": "sa",
        "serviceAccountAnnotations": {"b": "2", "a": "1"},
        "serviceAccountLabels": {"l": "v"},
        "podAnnotations": {"pa": "1"},
        "podLabels": {"pl": "1"},
        "forcePromote": "something",
        "forceRollout": "00000000-0000-0000-0000-00000000000a",
        "rolloutStrategy": "ManuallyPromote",
        "rolloutRequestTimeout": "90m",
        "authenticatorKind": "Sasl",
        "enableRbac": true,
        "systemParameterConfigmapName": "params",
        "balancerdExternalCertificateSpec": {"dnsNames": ["x"]},
        "consoleExternalCertificateSpec": {"dnsNames": ["x"]},
        "internalCertificateSpec":
            {"issuerRef": {"name": "i", "kind": "ClusterIssuer"}, "dnsNames": ["d"], "privateKeyAlgorithm": "RSA"},
        "balancerdConfigmapName": "dynamic",
    })
}

fn v1(spec: Value) -> v1::MaterializeSpec {
    serde_json::from_value(spec).expect("a spec at v1")
}

fn v1alpha1(spec: Value) -> v1alpha1::MaterializeSpec {
    serde_json::from_value(spec).expect("a spec at v1alpha1")
}

fn json_of(spec: &v1::MaterializeSpec) -> String {
    String::from_utf8(Hashed::from_v1(spec).to_json()).expect("JSON is UTF-8")
}

#[test]
fn the_hashed_text_is_that_of_the_reference() {
    assert_eq!(json_of(&v1(minimal())), MINIMAL_JSON);
    assert_eq!(json_of(&v1(full())), FULL_JSON);
}

#[test]
fn vectors() {
    let minimal_hash = "edcf5ca64571442a2148e2579a1c597991f2a75c1040eb1fb761a3018b48ef4d";
    let full_hash = "24d680bd0d7c342cae49083ea73bfb691d94dd3971fa6f9e1b8849fcf18ecb50";
    // sha256 of the minimal JSON followed by "again".
    let annotated_hash = "d0f51a9b378577ed380f4297ea7e609a6709cbadb523a34e42954da077671976";

    assert_eq!(RolloutHash::of_v1(&v1(minimal()), None).as_str(), minimal_hash);
    assert_eq!(RolloutHash::of_v1(&v1(minimal()), Some("")).as_str(), minimal_hash);
    assert_eq!(
        RolloutHash::of_v1(&v1(minimal()), Some("again")).as_str(),
        annotated_hash
    );
    assert_eq!(RolloutHash::of_v1(&v1(full()), None).as_str(), full_hash);
    assert_eq!(
        RolloutHash::of_v1alpha1(&v1alpha1(minimal()), None).as_str(),
        minimal_hash
    );
    assert_eq!(RolloutHash::of_v1alpha1(&v1alpha1(full()), None).as_str(), full_hash);
}

#[test]
fn request_ids_are_uuid_v5_in_the_oid_namespace() {
    // Python: uuid.uuid5(uuid.NAMESPACE_OID, "edcf…")
    assert_eq!(
        RolloutHash::of_v1(&v1(minimal()), None).request_id().to_string(),
        "00126004-e198-53b3-9929-336490891138"
    );
    assert_eq!(
        RolloutHash::of_v1(&v1(full()), None).request_id().to_string(),
        "8edcddc6-2738-5cfe-b0dc-d828669dc6da"
    );
}

#[test]
fn the_deprecated_role_hashes_as_its_annotation() {
    let mut spec = minimal();
    spec["environmentdIamRoleArn"] = json!("arn:x");
    let hash = "41ea73c48b1bccc143b852d37436e8d9026bd9453070cb49f57ff61c50a6e64d";
    assert_eq!(RolloutHash::of_v1alpha1(&v1alpha1(spec.clone()), None).as_str(), hash);

    spec["serviceAccountAnnotations"] = json!({"eks.amazonaws.com/role-arn": "arn:y"});
    let mut without_role = spec.clone();
    without_role["environmentdIamRoleArn"] = Value::Null;
    assert_eq!(
        RolloutHash::of_v1alpha1(&v1alpha1(spec), None),
        RolloutHash::of_v1alpha1(&v1alpha1(without_role), None),
        "an annotation that is there wins"
    );
}

#[test]
fn what_only_v1alpha1_has_does_not_count() {
    let mut spec = minimal();
    spec["requestRollout"] = json!("11111111-1111-1111-1111-111111111111");
    spec["inPlaceRollout"] = json!(true);
    assert_eq!(
        RolloutHash::of_v1alpha1(&v1alpha1(spec), None),
        RolloutHash::of_v1alpha1(&v1alpha1(minimal()), None)
    );
}

#[test]
fn every_hashed_field_counts_and_no_other() {
    let excluded = [
        "balancerdResourceRequirements",
        "consoleResourceRequirements",
        "balancerdReplicas",
        "consoleReplicas",
        "forcePromote",
        "balancerdExternalCertificateSpec",
        "consoleExternalCertificateSpec",
        "balancerdConfigmapName",
    ];
    let base = full();
    let hash = RolloutHash::of_v1(&v1(base.clone()), None);
    for (field, value) in base.as_object().expect("an object") {
        let mut spec = base.clone();
        spec[field] = match value {
            Value::String(_) if ["environmentdImageRef", "backendSecretName"].contains(&field.as_str()) => {
                json!("other")
            }
            _ => Value::Null,
        };
        let changed = RolloutHash::of_v1(&v1(spec), None) != hash;
        assert_eq!(changed, !excluded.contains(&field.as_str()), "{field}");
    }
}

#[test]
fn the_order_of_lists_counts() {
    let mut spec = full();
    spec["environmentdExtraArgs"] = json!(["--a", "--b"]);
    assert_ne!(
        RolloutHash::of_v1(&v1(spec), None),
        RolloutHash::of_v1(&v1(full()), None)
    );
}
