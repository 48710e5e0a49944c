#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};

use super::*;

fn balancer(spec: &Value) -> Balancer {
    let mut all = json!({
        "apiVersion": "materialize.cloud/v1alpha1",
        "kind": "Balancer",
        "metadata": {"name": "production", "namespace": "analytics", "uid": "7d1f3a52-5a0e-4f0a-8a6d-1d0f6a9b2c33"},
        "spec": {
            "balancerdImageRef": "materialize/balancerd:v26.42.0",
            "staticRouting": {"environmentdNamespace": "other", "environmentdServiceName": "mzabc-environmentd"},
        },
        "status": {"resourceId": "k3x9q0ab7z", "conditions": []},
    });
    for (key, value) in spec.as_object().unwrap() {
        all["spec"][key] = value.clone();
    }
    serde_json::from_value(all).unwrap()
}

fn built(flags: &[&str], spec: &Value) -> BalancerObjects {
    BalancerObjects::build(&balancer(spec), &Config::for_tests(flags)).unwrap()
}

fn container(objects: &BalancerObjects) -> Value {
    json!(objects.deployment)["spec"]["template"]["spec"]["containers"][0].clone()
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "namespace": "analytics",
        "labels": {
            "app.kubernetes.io/managed-by": "materialize-operator",
            "app.kubernetes.io/part-of": "materialize",
            "app.kubernetes.io/name": "balancerd",
            "app": "balancerd",
            "materialize.cloud/organization-name": "production",
            "materialize.cloud/organization-namespace": "analytics",
            "materialize.cloud/mz-resource-id": "k3x9q0ab7z",
            "materialize.cloud/app": "balancerd",
        },
        "ownerReferences": [{
            "apiVersion": "materialize.cloud/v1alpha1",
            "kind": "Balancer",
            "name": "production",
            "uid": "7d1f3a52-5a0e-4f0a-8a6d-1d0f6a9b2c33",
            "blockOwnerDeletion": true,
        }],
    })
}

fn pod_labels() -> Value {
    json!({
        "materialize.cloud/organization-name": "production",
        "materialize.cloud/organization-namespace": "analytics",
        "materialize.cloud/mz-resource-id": "k3x9q0ab7z",
        "materialize.cloud/app": "balancerd",
        "materialize.cloud/name": "mzk3x9q0ab7z-balancerd",
        "app": "balancerd",
    })
}

#[test]
fn the_plain_deployment() {
    let probe = |path: &str, period: i32, failures: i32| {
        json!({
            "httpGet": {"path": path, "port": 8080},
            "periodSeconds": period, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": failures,
        })
    };
    let delayed = |mut probe: Value, seconds: i32| {
        probe["initialDelaySeconds"] = json!(seconds);
        probe
    };
    assert_eq!(
        json!(built(&[], &json!({})).deployment),
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata("mzk3x9q0ab7z-balancerd"),
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": pod_labels()},
                "strategy": {"rollingUpdate": {"maxSurge": "100%"}},
                "template": {
                    "metadata": {"labels": pod_labels()},
                    "spec": {
                        "containers": [{
                            "name": "balancerd",
                            "image": "materialize/balancerd:v26.42.0",
                            "imagePullPolicy": "Always",
                            "args": [
                                "service",
                                "--pgwire-listen-addr=0.0.0.0:6875",
                                "--https-listen-addr=0.0.0.0:6876",
                                "--internal-http-listen-addr=0.0.0.0:8080",
                                "--https-resolver-template=mzabc-environmentd.other.svc.cluster.local:6876",
                                "--static-resolver-addr=mzabc-environmentd.other.svc.cluster.local:6875",
                                "--tls-mode=disable",
                            ],
                            "ports": [
                                {"name": "pgwire", "containerPort": 6875, "protocol": "TCP"},
                                {"name": "http", "containerPort": 6876, "protocol": "TCP"},
                                {"name": "internal-http", "containerPort": 8080, "protocol": "TCP"},
                            ],
                            "startupProbe": delayed(probe("/api/readyz", 3, 20), 3),
                            "readinessProbe": probe("/api/readyz", 10, 3),
                            "livenessProbe": delayed(probe("/api/livez", 10, 3), 8),
                        }],
                        "securityContext": {"fsGroup": 999, "runAsUser": 999, "runAsGroup": 999},
                    },
                },
            },
        })
    );
}

#[test]
fn every_setting_of_the_deployment() {
    let flags = [
        "--balancerd-node-selector=pool=edge",
        r#"--balancerd-affinity={"podAffinity":{}}"#,
        r#"--balancerd-toleration={"key":"a"}"#,
        r#"--balancerd-default-resources={"requests":{"cpu":"500m"}}"#,
        "--scheduler-name=s",
        "--image-pull-policy=never",
        "--enable-security-context",
        "--enable-prometheus-scrape-annotations",
        "--balancerd-internal-http-port=9090",
    ];
    let deployment = json!(built(&flags, &json!({"replicas": 5})).deployment);
    assert_eq!(deployment["spec"]["replicas"], 5);
    let template = &deployment["spec"]["template"];
    assert_eq!(
        template["metadata"]["annotations"],
        json!({
            "prometheus.io/scrape": "true",
            "prometheus.io/port": "9090",
            "prometheus.io/path": "/metrics",
            "prometheus.io/scheme": "http",
        })
    );
    let pod = &template["spec"];
    assert_eq!(pod["nodeSelector"], json!({"pool": "edge"}));
    assert_eq!(pod["affinity"], json!({"podAffinity": {}}));
    assert_eq!(pod["tolerations"], json!([{"key": "a"}]));
    assert_eq!(pod["schedulerName"], "s");
    let container = &pod["containers"][0];
    assert_eq!(container["imagePullPolicy"], "Never");
    assert_eq!(container["resources"], json!({"requests": {"cpu": "500m"}}));
    assert_eq!(
        container["livenessProbe"]["httpGet"],
        json!({"path": "/api/livez", "port": 9090})
    );
    assert_eq!(
        container["securityContext"],
        json!({
            "runAsNonRoot": true,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
            "allowPrivilegeEscalation": false,
        })
    );
}

#[test]
fn resources_of_the_resource_replace_the_default_as_a_whole() {
    let flags = [r#"--balancerd-default-resources={"requests":{"cpu":"500m"}}"#];
    let objects = built(&flags, &json!({"resourceRequirements": {"limits": {"memory": "1Gi"}}}));
    assert_eq!(container(&objects)["resources"], json!({"limits": {"memory": "1Gi"}}));
}

#[test]
fn external_and_internal_tls() {
    let issuer = json!({"issuerRef": {"name": "ca"}});
    let objects = built(
        &[],
        &json!({"externalCertificateSpec": issuer, "internalCertificateSpec": issuer}),
    );
    let container = container(&objects);
    let args: Vec<_> = container["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arg| arg.as_str().unwrap())
        .collect();
    assert_eq!(
        args[6..],
        [
            "--internal-tls",
            "--tls-mode=require",
            "--tls-cert=/etc/external_tls/tls.crt",
            "--tls-key=/etc/external_tls/tls.key",
        ]
    );
    assert_eq!(
        container["volumeMounts"],
        json!([
            {"name": "external-certificate", "mountPath": "/etc/external_tls", "readOnly": true},
        ])
    );
    assert_eq!(
        json!(objects.deployment)["spec"]["template"]["spec"]["volumes"],
        json!([
            {"name": "external-certificate", "secret": {
                "secretName": "mzk3x9q0ab7z-balancerd-external-tls", "defaultMode": 256, "optional": false,
            }},
        ])
    );
}

#[test]
fn internal_and_external_tls_do_not_depend_on_each_other() {
    let issuer = json!({"issuerRef": {"name": "ca"}});
    let internal_default = r#"--default-certificate-specs={"internal":{"issuerRef":{"name":"ca"}}}"#;
    for (flags, spec, expected) in [
        (vec![], json!({}), vec!["--tls-mode=disable"]),
        (
            vec![],
            json!({"internalCertificateSpec": issuer}),
            vec!["--internal-tls", "--tls-mode=disable"],
        ),
        (
            vec![internal_default],
            json!({}),
            vec!["--internal-tls", "--tls-mode=disable"],
        ),
        (
            vec![],
            json!({"externalCertificateSpec": issuer}),
            vec![
                "--tls-mode=require",
                "--tls-cert=/etc/external_tls/tls.crt",
                "--tls-key=/etc/external_tls/tls.key",
            ],
        ),
    ] {
        let args = container(&built(&flags, &spec))["args"].as_array().unwrap()[6..].to_vec();
        assert_eq!(args, expected, "{flags:?} {spec}");
    }
}

#[test]
fn the_external_certificate() {
    let flags = [r#"--default-certificate-specs={"balancerdExternal":{"issuerRef":{"name":"ca"},"duration":"1h"}}"#];
    let objects = built(
        &flags,
        &json!({"externalCertificateSpec": {"dnsNames": ["mz.example.com"]}}),
    );
    assert_eq!(
        json!(objects.certificate),
        json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": metadata("mzk3x9q0ab7z-balancerd-external"),
            "spec": {
                "dnsNames": ["mz.example.com"],
                "duration": "1h",
                "issuerRef": {"name": "ca"},
                "privateKey": {"algorithm": "ECDSA", "encoding": "PKCS8", "rotationPolicy": "Always", "size": 256},
                "secretName": "mzk3x9q0ab7z-balancerd-external-tls",
                "secretTemplate": {"labels": {
                    "materialize.cloud/organization-name": "production",
                    "materialize.cloud/organization-namespace": "analytics",
                    "materialize.cloud/mz-resource-id": "k3x9q0ab7z",
                    "materialize.cloud/app": "balancerd",
                }},
            },
        })
    );
    assert_eq!(built(&[], &json!({})).certificate, None);
}

/// RSA beside the default size of ECDSA: the size has to be given, too.
#[test]
fn rsa_without_a_size_is_refused() {
    let spec = json!({"externalCertificateSpec": {"issuerRef": {"name": "ca"}, "privateKeyAlgorithm": "RSA"}});
    let error = BalancerObjects::build(&balancer(&spec), &Config::for_tests(&[])).unwrap_err();
    assert_eq!(error, BuildError::Certificate(InvalidCertificate::RsaSize(256)));
    assert!(
        error
            .to_string()
            .starts_with("externalCertificateSpec: RSA key size must be at least 2048 bits")
    );
}

#[test]
fn the_service() {
    let flags = ["--balancerd-sql-port=1", "--balancerd-http-port=2"];
    assert_eq!(
        json!(built(&flags, &json!({})).service),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata("mzk3x9q0ab7z-balancerd"),
            "spec": {
                "type": "ClusterIP",
                "clusterIP": "None",
                "selector": {"materialize.cloud/name": "mzk3x9q0ab7z-balancerd"},
                "ports": [
                    {"name": "http", "port": 2, "targetPort": 2, "protocol": "TCP"},
                    {"name": "pgwire", "port": 1, "targetPort": 1, "protocol": "TCP"},
                ],
            },
        })
    );
}

#[test]
fn dynamic_configuration() {
    let objects = built(&[], &json!({"configmapName": "settings"}));
    let container = container(&objects);
    let args = container["args"].as_array().unwrap();
    assert_eq!(
        args[args.len() - 2..],
        [
            json!("--config-sync-file-path=/etc/balancerd/config.json"),
            json!("--config-sync-loop-interval=1s"),
        ]
    );
    assert_eq!(
        container["volumeMounts"],
        json!([
            {"name": "dynamic-config", "mountPath": "/etc/balancerd", "readOnly": true},
        ])
    );
    assert_eq!(
        json!(objects.deployment)["spec"]["template"]["spec"]["volumes"],
        json!([
            {"name": "dynamic-config", "configMap": {
                "name": "settings", "defaultMode": 256, "optional": false,
                "items": [{"key": "config.json", "path": "config.json"}],
            }},
        ])
    );
}

#[test]
fn the_users_labels_and_annotations_stay_under_the_fixed_ones_and_out_of_the_selector() {
    let spec = json!({
        "podLabels": {"app": "own", "team": "data"},
        "podAnnotations": {"prometheus.io/scrape": "false", "owner": "data"},
    });
    let deployment = json!(built(&["--enable-prometheus-scrape-annotations"], &spec).deployment);
    let template = &deployment["spec"]["template"]["metadata"];
    assert_eq!(template["labels"]["app"], "balancerd");
    assert_eq!(template["labels"]["team"], "data");
    assert_eq!(template["annotations"]["prometheus.io/scrape"], "true");
    assert_eq!(template["annotations"]["owner"], "data");
    assert_eq!(deployment["spec"]["selector"], json!({"matchLabels": pod_labels()}));
}

#[test]
fn routing_must_be_clear() {
    let routing = json!({"environmentdNamespace": "a", "environmentdServiceName": "b"});
    for (fixed, frontegg, error, text) in [
        (
            Value::Null,
            Value::Null,
            InvalidRouting::Missing,
            "no routing configuration present",
        ),
        (
            routing,
            json!({}),
            InvalidRouting::Multiple,
            "multiple routing configurations present",
        ),
        (
            Value::Null,
            json!({}),
            InvalidRouting::Frontegg,
            "frontegg routing is not yet implemented",
        ),
    ] {
        let resource = balancer(&json!({"staticRouting": fixed, "fronteggRouting": frontegg}));
        let found = BalancerObjects::build(&resource, &Config::for_tests(&[])).unwrap_err();
        assert_eq!(found, BuildError::Routing(error));
        assert_eq!(found.to_string(), text);
    }
}

#[test]
fn without_a_status_nothing_is_built() {
    let mut resource = balancer(&json!({}));
    resource.status = None;
    let error = BalancerObjects::build(&resource, &Config::for_tests(&[])).unwrap_err();
    assert_eq!(error, BuildError::Owner(IncompleteOwner::ResourceId));
}
