#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};

use super::*;

fn console(spec: &Value) -> Console {
    let mut all = json!({
        "apiVersion": "materialize.cloud/v1alpha1",
        "kind": "Console",
        "metadata": {"name": "production", "namespace": "analytics", "uid": "7d1f3a52-5a0e-4f0a-8a6d-1d0f6a9b2c33"},
        "spec": {
            "consoleImageRef": "materialize/console:v26.43.0",
            "balancerd": {"serviceName": "mzabc-balancerd", "namespace": "other", "scheme": "http"},
        },
        "status": {"resourceId": "k3x9q0ab7z", "conditions": []},
    });
    for (key, value) in spec.as_object().unwrap() {
        all["spec"][key] = value.clone();
    }
    serde_json::from_value(all).unwrap()
}

fn built(flags: &[&str], spec: &Value) -> ConsoleObjects {
    ConsoleObjects::build(&console(spec), &Config::for_tests(flags)).unwrap()
}

fn own_labels() -> Value {
    json!({
        "materialize.cloud/organization-name": "production",
        "materialize.cloud/organization-namespace": "analytics",
        "materialize.cloud/mz-resource-id": "k3x9q0ab7z",
        "materialize.cloud/app": "console",
    })
}

fn metadata(name: &str) -> Value {
    let mut labels = own_labels();
    labels["app.kubernetes.io/managed-by"] = json!("materialize-operator");
    labels["app.kubernetes.io/part-of"] = json!("materialize");
    labels["app.kubernetes.io/name"] = json!("console");
    labels["app"] = json!("console");
    json!({
        "name": name,
        "namespace": "analytics",
        "labels": labels,
        "ownerReferences": [{
            "apiVersion": "materialize.cloud/v1alpha1",
            "kind": "Console",
            "name": "production",
            "uid": "7d1f3a52-5a0e-4f0a-8a6d-1d0f6a9b2c33",
            "blockOwnerDeletion": true,
        }],
    })
}

fn pod_labels() -> Value {
    let mut labels = own_labels();
    labels["materialize.cloud/name"] = json!("mzk3x9q0ab7z-console");
    labels["app"] = json!("console");
    labels
}

#[test]
fn the_plain_deployment() {
    let get = json!({"path": "/", "port": 8080, "scheme": "HTTP"});
    // Scrape annotations are not for the console.
    let flags = ["--enable-prometheus-scrape-annotations"];
    assert_eq!(
        json!(built(&flags, &json!({})).deployment),
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata("mzk3x9q0ab7z-console"),
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": pod_labels()},
                "template": {
                    "metadata": {"labels": pod_labels()},
                    "spec": {
                        "containers": [{
                            "name": "console",
                            "image": "materialize/console:v26.43.0",
                            "imagePullPolicy": "Always",
                            "env": [
                                {"name": "MZ_ENDPOINT", "value": "http://mzabc-balancerd.other.svc.cluster.local:6876"},
                                {"name": "MZ_NGINX_LISTENER_CONFIG", "value": "listen 8080;"},
                            ],
                            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                            "startupProbe": {"httpGet": get, "periodSeconds": 1, "failureThreshold": 10},
                            "readinessProbe": {"httpGet": get, "periodSeconds": 30, "failureThreshold": 1},
                            "livenessProbe": {"httpGet": get, "periodSeconds": 30},
                            "volumeMounts": [{"name": "app-config", "mountPath": "/usr/share/nginx/html/app-config"}],
                        }],
                        "securityContext": {"fsGroup": 101},
                        "volumes": [{"name": "app-config", "configMap": {
                            "name": "mzk3x9q0ab7z-console", "defaultMode": 256, "optional": false,
                            "items": [{"key": "app-config.json", "path": "app-config.json"}],
                        }}],
                    },
                },
            },
        })
    );
}

#[test]
fn every_setting_of_the_deployment() {
    let flags = [
        "--console-node-selector=pool=edge",
        r#"--console-affinity={"podAffinity":{}}"#,
        r#"--console-toleration={"key":"a"}"#,
        r#"--console-default-resources={"requests":{"cpu":"500m"}}"#,
        "--scheduler-name=s",
        "--image-pull-policy=if-not-present",
        "--enable-security-context",
    ];
    let spec = json!({"replicas": 1, "podLabels": {"app": "own", "a": "b"}, "podAnnotations": {"c": "d"}});
    let deployment = json!(built(&flags, &spec).deployment);
    assert_eq!(deployment["spec"]["replicas"], 1);
    assert_eq!(deployment["spec"]["selector"], json!({"matchLabels": pod_labels()}));
    let template = &deployment["spec"]["template"];
    assert_eq!(template["metadata"]["labels"]["app"], "console");
    assert_eq!(template["metadata"]["labels"]["a"], "b");
    assert_eq!(template["metadata"]["annotations"], json!({"c": "d"}));
    let pod = &template["spec"];
    assert_eq!(pod["nodeSelector"], json!({"pool": "edge"}));
    assert_eq!(pod["affinity"], json!({"podAffinity": {}}));
    assert_eq!(pod["tolerations"], json!([{"key": "a"}]));
    assert_eq!(pod["schedulerName"], "s");
    let container = &pod["containers"][0];
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    assert_eq!(container["resources"], json!({"requests": {"cpu": "500m"}}));
    assert_eq!(container["securityContext"]["runAsNonRoot"], true);
}

#[test]
fn tls() {
    let objects = built(
        &["--console-http-port=8443"],
        &json!({
            "externalCertificateSpec": {"issuerRef": {"name": "ca"}},
            "balancerd": {"serviceName": "b", "namespace": "n", "scheme": "https"},
        }),
    );
    let pod = json!(objects.deployment)["spec"]["template"]["spec"].clone();
    let container = &pod["containers"][0];
    assert_eq!(
        container["env"],
        json!([
            {"name": "MZ_ENDPOINT", "value": "https://b.n.svc.cluster.local:6876"},
            {"name": "MZ_NGINX_LISTENER_CONFIG", "value":
                "listen 8443 ssl;\nssl_certificate /nginx/tls/tls.crt;\nssl_certificate_key /nginx/tls/tls.key;"},
        ])
    );
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        assert_eq!(
            container[probe]["httpGet"],
            json!({"path": "/", "port": 8443, "scheme": "HTTPS"})
        );
    }
    assert_eq!(
        container["volumeMounts"][1],
        json!(
            {"name": "external-certificate", "mountPath": "/nginx/tls", "readOnly": true}
        )
    );
    assert_eq!(
        pod["volumes"][1],
        json!({"name": "external-certificate", "secret": {
            "secretName": "mzk3x9q0ab7z-console-external-tls", "defaultMode": 256, "optional": false,
        }})
    );
    let certificate = json!(objects.certificate);
    assert_eq!(certificate["metadata"], metadata("mzk3x9q0ab7z-console-external"));
    assert_eq!(
        certificate["spec"],
        json!({
            "dnsNames": [],
            "issuerRef": {"name": "ca"},
            "privateKey": {"algorithm": "ECDSA", "encoding": "PKCS8", "rotationPolicy": "Always", "size": 256},
            "secretName": "mzk3x9q0ab7z-console-external-tls",
            "secretTemplate": {"labels": own_labels()},
        })
    );
}

#[test]
fn the_config_map() {
    let objects = built(
        &[],
        &json!({
            "authenticatorKind": "Password",
            "balancerd": {"serviceName": "b", "namespace": "n", "scheme": "http", "dnsNames": ["balancerd.example.com"]},
        }),
    );
    let text = r#"{"version":"v26.43.0","auth":{"mode":"Password"},"balancerd_dns_names":["balancerd.example.com"]}"#;
    assert_eq!(
        json!(objects.config_map),
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata("mzk3x9q0ab7z-console"),
            "data": {"app-config.json": text},
        })
    );
}

#[test]
fn the_version_shown_by_the_console() {
    for (image, version) in [
        ("materialize/console:v1", "v1"),
        ("registry:5000/console:v1@sha256:abc", "v1"),
        ("materialize/console@sha256:abc", "abc"),
        ("materialize/console", "materialize/console"),
    ] {
        let objects = built(&[], &json!({"consoleImageRef": image}));
        let text = objects.config_map.data.unwrap()["app-config.json"].clone();
        assert_eq!(
            text,
            format!(r#"{{"version":"{version}","auth":{{"mode":"None"}}}}"#),
            "{image}"
        );
    }
}

#[test]
fn the_service() {
    assert_eq!(
        json!(built(&[], &json!({})).service),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata("mzk3x9q0ab7z-console"),
            "spec": {
                "type": "ClusterIP",
                "clusterIP": "None",
                "selector": {"materialize.cloud/name": "mzk3x9q0ab7z-console"},
                "ports": [{"name": "http", "port": 8080, "targetPort": 8080, "protocol": "TCP"}],
            },
        })
    );
}

#[test]
fn the_network_policy_follows_its_flag() {
    let flags = [
        "--network-policies-ingress-enabled",
        "--network-policies-ingress-cidrs=10.0.0.0/8",
    ];
    assert_eq!(
        json!(built(&flags, &json!({})).network_policy),
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": metadata("mzk3x9q0ab7z-console-ingress"),
            "spec": {
                "podSelector": {"matchLabels": own_labels()},
                "policyTypes": ["Ingress"],
                "ingress": [{
                    "from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
                    "ports": [{"port": 8080, "protocol": "TCP"}],
                }],
            },
        })
    );
    assert_eq!(built(&flags[1..], &json!({})).network_policy, None);
}

#[test]
fn without_a_status_nothing_is_built() {
    let mut resource = console(&json!({}));
    resource.status = None;
    let error = ConsoleObjects::build(&resource, &Config::for_tests(&[])).unwrap_err();
    assert_eq!(error, BuildError::Owner(IncompleteOwner::ResourceId));
}
