#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use super::*;

fn balancer(spec: &Value) -> Balancer {
    let mut all = json!({
        "apiVersion": "materialize.cloud/v1alpha1", "kind": "Balancer",
        "metadata": {"name": "mz", "namespace": "ns", "uid": "u"},
        "spec": {
            "balancerdImageRef": "materialize/balancerd:v26.42.0",
            "staticRouting": {"environmentdNamespace": "ns", "environmentdServiceName": "mzx-environmentd"},
        },
        "status": {"resourceId": "x", "conditions": []},
    });
    for (key, value) in spec.as_object().unwrap() {
        all["spec"][key] = value.clone();
    }
    serde_json::from_value(all).unwrap()
}

fn plan(spec: &Value) -> Plan {
    balancer(spec).plan(&Config::for_tests(&[])).unwrap()
}

fn kinds(plan: &Plan) -> Vec<&'static str> {
    plan.objects
        .iter()
        .map(|object| match object {
            Object::Certificate(_) => "Certificate",
            Object::ConfigMap(_) => "ConfigMap",
            Object::Deployment(_) => "Deployment",
            Object::NetworkPolicy(_) => "NetworkPolicy",
            Object::Service(_) => "Service",
        })
        .collect()
}

fn tls() -> Value {
    json!({"issuerRef": {"name": "ca"}})
}

#[test]
fn without_tls_the_certificate_is_not_wanted() {
    let plan = plan(&json!({}));
    assert_eq!(kinds(&plan), ["Deployment", "Service"]);
    assert_eq!(
        plan.unwanted,
        [Unwanted::Certificate("mzx-balancerd-external".to_owned())]
    );
    assert_eq!((plan.stall, plan.certificate, plan.config_map), (None, None, None));
}

#[test]
fn with_tls_the_certificate_comes_first() {
    let plan = plan(&json!({"externalCertificateSpec": tls(), "configmapName": "settings"}));
    assert_eq!(kinds(&plan), ["Certificate", "Deployment", "Service"]);
    assert_eq!(plan.unwanted, []);
    assert_eq!(
        plan.certificate,
        Some((
            "mzx-balancerd-external-tls".to_owned(),
            "mzx-balancerd-external".to_owned()
        ))
    );
    assert_eq!(plan.config_map, Some(("settings".to_owned(), "config.json")));
}

#[test]
fn unclear_routing_leaves_the_certificate_alone_and_names_the_fault() {
    for (spec, text) in [
        (json!({"staticRouting": null}), "no routing configuration present"),
        (
            json!({"fronteggRouting": {}}),
            "multiple routing configurations present",
        ),
        (
            json!({"staticRouting": null, "fronteggRouting": {}}),
            "frontegg routing is not yet implemented",
        ),
    ] {
        let mut spec = spec;
        assert_eq!(kinds(&plan(&spec)), [""; 0], "{text}");
        spec["externalCertificateSpec"] = tls();
        let plan = plan(&spec);
        assert_eq!(kinds(&plan), ["Certificate"], "{text}");
        assert_eq!(plan.stall, Some(Stall::InvalidRouting(text.to_owned())));
        assert_eq!(plan.unwanted, [], "nothing is deleted meanwhile");
    }
}

#[test]
fn impossible_certificates_stop_everything() {
    for (setting, text) in [
        (
            json!({"privateKeyAlgorithm": "RSA", "privateKeySize": 2047}),
            "at least 2048",
        ),
        (
            json!({"privateKeyAlgorithm": "ECDSA", "privateKeySize": 512}),
            "256, 384, or 521",
        ),
        (json!({"duration": "90d"}), "duration must be given in hours"),
        (
            json!({"duration": "2h", "renewBefore": "2h"}),
            "renewBefore (2h) must be shorter than duration (2h)",
        ),
        (
            json!({"dnsNames": ["mz.example.com", "not a name"]}),
            "\"not a name\" is no DNS name",
        ),
    ] {
        let mut spec = tls();
        spec.as_object_mut()
            .unwrap()
            .extend(setting.as_object().unwrap().clone());
        let plan = plan(&json!({"externalCertificateSpec": spec}));
        assert_eq!(kinds(&plan), [""; 0], "{setting}");
        let Some(Stall::InvalidCertificateSpec(message)) = &plan.stall else {
            unreachable!("{setting}: {:?}", plan.stall)
        };
        assert!(
            message.starts_with("externalCertificateSpec: ") && message.contains(text),
            "{message}"
        );
    }
}

#[test]
fn a_resource_without_a_status_is_not_planned() {
    let mut balancer = balancer(&json!({}));
    balancer.status = None;
    assert_eq!(balancer.plan(&Config::for_tests(&[])), Err(IncompleteOwner::ResourceId));
}
