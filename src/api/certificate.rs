//! The part of a cert-manager Certificate that users may set. See `docs/reference/materialize-resource.md`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A deliberate subset of the spec of a cert-manager Certificate. All fields are optional: what a resource leaves
/// unset comes from the operator's flag `--default-certificate-specs`.
///
/// The order of the fields and which of them are written as `null` is part of the rollout hash (decision R21).
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MaterializeCertSpec {
    /// Additional DNS names that the certificate will be valid for.
    pub dns_names: Option<Vec<String>>,
    /// How long the certificate is valid, as a Go duration such as `2160h`.
    pub duration: Option<String>,
    /// How long before its end the certificate is renewed, as a Go duration.
    pub renew_before: Option<String>,
    /// The Issuer or `ClusterIssuer` that signs the certificate. Without one, no certificate is made.
    pub issuer_ref: Option<IssuerRef>,
    /// Annotations and labels for the Secret that cert-manager creates.
    pub secret_template: Option<SecretTemplate>,
    /// Algorithm of the private key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key_algorithm: Option<PrivateKeyAlgorithm>,
    /// Size of the private key in bits: at least 2048 for RSA; 256, 384 or 521 for ECDSA; ignored for Ed25519.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key_size: Option<i64>,
}

/// Reference to an issuer of cert-manager.
// Fields stand in the order in which the rollout hash needs them.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuerRef {
    /// API group of the issuer; cert-manager's own if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Kind of the issuer, `Issuer` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the issuer.
    pub name: String,
}

/// Metadata for the Secret of a certificate.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretTemplate {
    /// Annotations for the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Labels for the Secret. The operator's own labels win over these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
}

/// Algorithm of a private key.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum PrivateKeyAlgorithm {
    /// RSA.
    #[serde(rename = "RSA")]
    Rsa,
    /// ECDSA over a NIST curve.
    #[serde(rename = "ECDSA")]
    Ecdsa,
    /// Ed25519.
    Ed25519,
}

// === impl MaterializeCertSpec ===

impl MaterializeCertSpec {
    /// Whether `spec`, or else the operator's `default`, names an issuer: if so there is a certificate, and TLS is on.
    pub fn issuer_defined(spec: Option<&Self>, default: Option<&Self>) -> bool {
        [spec, default]
            .into_iter()
            .flatten()
            .any(|spec| spec.issuer_ref.is_some())
    }
}

// === impl PrivateKeyAlgorithm ===

impl PrivateKeyAlgorithm {
    /// The name as it stands in resources and in cert-manager's Certificate.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rsa => "RSA",
            Self::Ecdsa => "ECDSA",
            Self::Ed25519 => "Ed25519",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_members_are_null_except_the_newer_ones() {
        let text = serde_json::to_string(&MaterializeCertSpec::default()).expect("serialises");
        assert_eq!(
            text,
            r#"{"dnsNames":null,"duration":null,"renewBefore":null,"issuerRef":null,"secretTemplate":null}"#
        );
    }

    #[test]
    fn every_member_is_read_and_written_in_order() {
        let text = concat!(
            r#"{"dnsNames":["a"],"duration":"1h","renewBefore":"1m","issuerRef":{"group":"g","kind":"k","name":"n"},"#,
            r#""secretTemplate":{"annotations":{"a":"b"},"labels":{"c":"d"}},"privateKeyAlgorithm":"ECDSA","privateKeySize":384}"#
        );
        let spec: MaterializeCertSpec = serde_json::from_str(text).expect("every member is known");
        assert_eq!(serde_json::to_string(&spec).expect("serialises"), text);
    }

    #[test]
    fn an_issuer_needs_a_name() {
        assert!(
            serde_json::from_value::<MaterializeCertSpec>(json!({"issuerRef": {"kind": "ClusterIssuer"}})).is_err()
        );
    }

    #[test]
    fn nulls_count_as_absent() {
        let spec: MaterializeCertSpec = serde_json::from_value(json!({
            "dnsNames": null, "duration": null, "renewBefore": null, "issuerRef": null, "secretTemplate": null,
            "privateKeyAlgorithm": null, "privateKeySize": null,
        }))
        .expect("null is accepted");
        assert_eq!(spec, MaterializeCertSpec::default());
    }

    #[test]
    fn an_issuer_may_come_from_either_level() {
        let with = MaterializeCertSpec {
            issuer_ref: Some(IssuerRef::default()),
            ..MaterializeCertSpec::default()
        };
        let without = MaterializeCertSpec::default();
        for (spec, default, defined) in [
            (None, None, false),
            (Some(&without), Some(&without), false),
            (Some(&with), None, true),
            (None, Some(&with), true),
            (Some(&without), Some(&with), true),
        ] {
            assert_eq!(MaterializeCertSpec::issuer_defined(spec, default), defined);
        }
    }
}
