//! Whole sets of objects compared with files that were written from the specification.
//!
//! Each file in `golden/` holds the operator's flags, a `Materialize`, a generation, and what must be generated.
//! Members of an object's metadata that equal those of `managed` are left out of the files.
//! An edit of a file is a change of behaviour: it offers every environment of that kind a rollout, and needs a line
//! in docs/reference/generated-objects.md. Never copy the program's output into one without reading it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Environment, GenerationObjects, GlobalObjects, balancer, console};
use crate::api::v1alpha1::Materialize;
use crate::args::Config;

#[derive(Deserialize)]
struct Golden {
    flags: Vec<String>,
    generation: u64,
    materialize: Materialize,
    expected: Value,
}

fn rendered(golden: &Golden) -> Value {
    let flags: Vec<&str> = golden.flags.iter().map(String::as_str).collect();
    let config = Config::for_tests(&flags);
    let environment = Environment::new(&golden.materialize, &config).unwrap();
    let global = GlobalObjects::build(&environment, &[]).unwrap();
    let generation = GenerationObjects::build(&environment, golden.generation);
    let mut listeners = json!(generation.listeners);
    // The file inside is compared as JSON, not as text.
    let file = listeners["data"]["listeners.json"].as_str().unwrap().to_owned();
    listeners["data"]["listeners.json"] = serde_json::from_str(&file).unwrap();
    let managed = json!(environment.identity.metadata(""));
    let mut all = json!({
        "networkPolicies": global.network_policies,
        "serviceAccount": global.service_account,
        "role": global.role,
        "roleBinding": global.role_binding,
        "certificate": global.certificate,
        "publicService": generation.public_service,
        "generationService": generation.generation_service,
        "persistPubsubService": generation.persist_pubsub_service,
        "listeners": listeners,
        "statefulSet": generation.stateful_set,
        "connection": generation.connection,
        "balancer": balancer::build(&environment),
        "console": console::build(&environment),
    });
    leave_out_managed(&managed, &mut all);
    all["managed"] = managed;
    all["managed"].as_object_mut().unwrap().remove("name");
    all
}

/// Removes from every `metadata` what is the same in `managed`.
fn leave_out_managed(managed: &Value, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| leave_out_managed(managed, item)),
        Value::Object(members) => {
            members
                .values_mut()
                .for_each(|member| leave_out_managed(managed, member));
            if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
                metadata.retain(|key, member| managed.get(key) != Some(member));
            }
        }
        _ => {}
    }
}

/// Every path at which the two differ.
fn differences(path: &str, expected: &Value, actual: &Value, found: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let absent = Value::String("(absent)".to_owned());
                let [left, right] = [left, right].map(|side| side.get(key).unwrap_or(&absent));
                differences(&format!("{path}.{key}"), left, right, found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                differences(&format!("{path}[{index}]"), left, right, found);
            }
        }
        _ if expected == actual => {}
        _ => found.push(format!("{path}: expected {expected}, got {actual}")),
    }
}

fn check(text: &str) {
    let golden: Golden = serde_json::from_str(text).unwrap();
    let mut found = Vec::new();
    differences("", &golden.expected, &rendered(&golden), &mut found);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

macro_rules! golden {
    ($($test:ident: $file:literal),* $(,)?) => {$(
        #[test]
        fn $test() {
            check(include_str!(concat!("golden/", $file, ".json")));
        }
    )*};
}

golden! {
    aws_none_plain: "aws-none-plain",
    aws_password_tls: "aws-password-tls",
    gcp_none_tls: "gcp-none-tls",
    gcp_sasl_plain: "gcp-sasl-plain",
    generic_password_plain_legacy: "generic-password-plain-legacy",
    generic_sasl_tls_legacy: "generic-sasl-tls-legacy",
    local_none_plain_oldest: "local-none-plain-oldest",
}

#[test]
fn a_difference_is_found_wherever_it_is() {
    let mut found = Vec::new();
    differences(
        "",
        &json!({"a": [1, {"b": 2}], "c": 3}),
        &json!({"a": [1, {"b": 9}], "d": 3}),
        &mut found,
    );
    assert_eq!(
        found,
        [
            ".a[1].b: expected 2, got 9",
            ".c: expected 3, got \"(absent)\"",
            ".d: expected \"(absent)\", got 3",
        ]
    );
}
