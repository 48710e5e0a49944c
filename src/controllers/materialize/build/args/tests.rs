#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};

use super::super::fixtures::with;

const NEWEST: &str = "v26.42.0";

fn args(tag: &str, flags: &[&str], spec: &Value) -> Vec<String> {
    with(tag, flags, spec, |environment| super::build(environment, 3))
}

/// The arguments that begin with `--name=`, or are `--name`.
fn named(name: &str, tag: &str, flags: &[&str], spec: &Value) -> Vec<String> {
    let name = format!("--{name}");
    let is_named = |arg: &String| {
        arg.strip_prefix(&name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    args(tag, flags, spec).into_iter().filter(is_named).collect()
}

/// One row of the table: with the flags and the spec there are these arguments of that name, without them none.
fn only_with(name: &str, flags: &[&str], spec: &Value, expected: &[&str]) {
    assert_eq!(
        named(name, NEWEST, flags, spec),
        expected,
        "{name} with {flags:?} {spec}"
    );
    assert_eq!(named(name, NEWEST, &[], &json!({})), [""; 0], "{name} without");
}

/// Every row that has no condition, in order, with nothing configured.
#[test]
fn unconditional_rows_in_order() {
    assert_eq!(
        args(NEWEST, &[], &json!({"enableRbac": true})),
        [
            "--environment-id=local-local-12345678-1234-4234-9234-123456789012-0",
            "--clusterd-image=materialize/clusterd:v26.42.0",
            "--cors-allowed-origin=http://local.dev.materialize.com:3000",
            "--cors-allowed-origin=http://local.mtrlz.com:3000",
            "--cors-allowed-origin=http://localhost:3000",
            "--cors-allowed-origin=https://staging.console.materialize.com",
            "--secrets-controller=kubernetes",
            "--system-parameter-default=cluster_enable_topology_spread=false",
            "--persist-isolated-runtime-threads=-1",
            "--orchestrator=kubernetes",
            "--orchestrator-kubernetes-service-account=production",
            "--orchestrator-kubernetes-image-pull-policy=always",
            "--orchestrator-kubernetes-service-label=materialize.cloud/mz-resource-id=k3x9q0ab7z",
            "--orchestrator-kubernetes-service-label=materialize.cloud/organization-name=production",
            "--orchestrator-kubernetes-service-label=materialize.cloud/organization-namespace=analytics",
            "--orchestrator-kubernetes-name-prefix=mzk3x9q0ab7z-",
            "--log-format=json",
            "--opentelemetry-resource=organization_id=12345678-1234-4234-9234-123456789012",
            "--opentelemetry-resource=environment_name=production",
            "--tls-mode=disable",
            "--orchestrator-kubernetes-service-fs-group=999",
            "--persist-pubsub-url=http://mzk3x9q0ab7z-persist-pubsub-3:6879",
            "--internal-persist-pubsub-listen-addr=0.0.0.0:6879",
            "--deploy-generation=3",
            "--internal-console-redirect-url=https://console.materialize.com",
            "--orchestrator-kubernetes-disable-pod-metrics-collection",
            "--listeners-config-path=/listeners/listeners.json",
        ]
    );
}

#[test]
fn row_1_helm_chart_version() {
    only_with(
        "helm-chart-version",
        &["--helm-chart-version=v1"],
        &json!({}),
        &["--helm-chart-version=v1"],
    );
}

#[test]
fn row_4_cluster_replica_sizes_are_passed_on_as_they_are() {
    let flag = r#"--environmentd-cluster-replica-sizes={"b":{"scale":1},"a":{}}"#;
    only_with(
        "cluster-replica-sizes",
        &[flag],
        &json!({}),
        &[r#"--cluster-replica-sizes={"b":{"scale":1},"a":{}}"#],
    );
}

#[test]
fn rows_5_to_7_bootstrap() {
    for name in [
        "bootstrap-default-cluster-replica-size",
        "bootstrap-builtin-system-cluster-replica-size",
        "bootstrap-builtin-probe-cluster-replica-size",
        "bootstrap-builtin-support-cluster-replica-size",
        "bootstrap-builtin-catalog-server-cluster-replica-size",
        "bootstrap-builtin-analytics-cluster-replica-size",
        "bootstrap-builtin-system-cluster-replication-factor",
        "bootstrap-builtin-probe-cluster-replication-factor",
        "bootstrap-builtin-support-cluster-replication-factor",
        "bootstrap-builtin-analytics-cluster-replication-factor",
    ] {
        let arg = format!("--{name}=2");
        only_with(name, &[&arg], &json!({}), &[&arg]);
    }
}

#[test]
fn row_8_origins_replace_the_default() {
    let flags = [
        "--environmentd-allowed-origins=https://a",
        "--environmentd-allowed-origins=https://b",
    ];
    let expected = ["--cors-allowed-origin=https://a", "--cors-allowed-origin=https://b"];
    assert_eq!(named("cors-allowed-origin", NEWEST, &flags, &json!({})), expected);
}

#[test]
fn row_9_secrets_controller() {
    let flags = ["--secrets-controller=aws-secrets-manager"];
    let expected = ["--secrets-controller=aws-secrets-manager"];
    assert_eq!(named("secrets-controller", NEWEST, &flags, &json!({})), expected);
}

/// Rows 10 to 14: which defaults of system parameters are set under which flags.
#[test]
fn rows_10_to_14_system_parameters() {
    let spread = "cluster_enable_topology_spread=false";
    let rbac = "enable_rbac_checks=false";
    for (flags, enable_rbac, expected) in [
        (vec![], true, vec![spread]),
        (vec![], false, vec![spread, rbac]),
        (vec!["--cloud-provider=docker"], true, vec![spread]),
        (vec!["--cloud-provider=mzcompose"], true, vec![spread]),
        (vec!["--cloud-provider=cloudtest"], true, vec![spread]),
        (vec!["--cloud-provider=aws"], true, vec![]),
        (vec!["--cloud-provider=gcp"], true, vec![]),
        (vec!["--cloud-provider=azure"], true, vec![]),
        (vec!["--cloud-provider=generic"], true, vec![]),
        (
            vec![r#"--environmentd-cluster-replica-sizes={"b":1,"a":2,"10":3}"#],
            true,
            vec!["allowed_cluster_replica_sizes='10', 'a', 'b'", spread],
        ),
        (
            vec!["--enable-internal-statement-logging"],
            true,
            vec![spread, "enable_internal_statement_logging=true"],
        ),
        (vec!["--disable-statement-logging"], true, vec![spread]),
        (
            vec!["--statement-logging-max-sample-rate=0.99"],
            true,
            vec![spread, "statement_logging_max_sample_rate=0.99"],
        ),
        (
            vec!["--statement-logging-max-sample-rate=0"],
            true,
            vec![spread, "statement_logging_max_sample_rate=0"],
        ),
        (
            vec!["--statement-logging-max-sample-rate=1.0"],
            true,
            vec![spread, "statement_logging_max_sample_rate=1"],
        ),
        (
            vec![
                "--statement-logging-target-data-rate=2071",
                "--statement-logging-max-sample-rate=0.5",
            ],
            false,
            vec![
                spread,
                "statement_logging_max_sample_rate=0.5",
                "statement_logging_target_data_rate=2071",
                rbac,
            ],
        ),
        (
            vec!["--disable-database-network-policies"],
            true,
            vec![spread, "enable_network_policies=false"],
        ),
    ] {
        let found = named(
            "system-parameter-default",
            NEWEST,
            &flags,
            &json!({"enableRbac": enable_rbac}),
        );
        let expected: Vec<_> = expected
            .iter()
            .map(|value| format!("--system-parameter-default={value}"))
            .collect();
        assert_eq!(found, expected, "{flags:?}");
    }
}

#[test]
fn row_16_aws_in_order() {
    let flags = [
        "--cloud-provider=aws",
        "--aws-account-id=1234",
        "--environmentd-connection-role-arn=arn:default",
        "--environmentd-availability-zones=az1",
        "--environmentd-availability-zones=az2",
        "--aws-secrets-controller-tags=--aws-secrets-controller-tags=a=b",
    ];
    let between = |spec: Value| {
        let all = args(NEWEST, &flags, &spec);
        let start = all
            .iter()
            .position(|arg| arg == "--persist-isolated-runtime-threads=-1")
            .unwrap();
        let end = all.iter().position(|arg| arg == "--orchestrator=kubernetes").unwrap();
        all[start + 1..end].to_vec()
    };
    let expected = |role: &str| {
        vec![
            "--availability-zone=az1".to_owned(),
            "--availability-zone=az2".to_owned(),
            format!("--aws-connection-role-arn={role}"),
            "--aws-account-id=1234".to_owned(),
            "--aws-secrets-controller-tags=Environment=production".to_owned(),
            "--aws-secrets-controller-tags=a=b".to_owned(),
        ]
    };
    assert_eq!(between(json!({})), expected("arn:default"));
    assert_eq!(
        between(json!({"environmentdConnectionRoleArn": "arn:own"})),
        expected("arn:own")
    );
}

#[test]
fn row_16_aws_settings_do_nothing_elsewhere() {
    let flags = [
        "--cloud-provider=gcp",
        "--aws-account-id=1234",
        "--environmentd-availability-zones=az1",
        "--aws-secrets-controller-tags=x",
    ];
    assert_eq!(
        args(NEWEST, &flags, &json!({"environmentdConnectionRoleArn": "arn:own"})),
        args(NEWEST, &["--cloud-provider=gcp"], &json!({}))
    );
}

#[test]
fn row_17_service_account_and_pull_policy() {
    let spec = json!({"serviceAccountName": "own"});
    let expected = ["--orchestrator-kubernetes-service-account=own"];
    assert_eq!(
        named("orchestrator-kubernetes-service-account", NEWEST, &[], &spec),
        expected
    );
    for policy in ["always", "if-not-present", "never"] {
        let flag = format!("--image-pull-policy={policy}");
        let expected = [format!("--orchestrator-kubernetes-image-pull-policy={policy}")];
        assert_eq!(
            named(
                "orchestrator-kubernetes-image-pull-policy",
                NEWEST,
                &[&flag],
                &json!({})
            ),
            expected
        );
    }
}

#[test]
fn row_18_node_selector_sorted_by_key() {
    let name = "orchestrator-kubernetes-service-node-selector";
    let flags = ["--clusterd-node-selector=b=2", "--clusterd-node-selector=a=1"];
    only_with(
        name,
        &flags,
        &json!({}),
        &[&format!("--{name}=a=1"), &format!("--{name}=b=2")],
    );
}

/// Rows whose argument depends on environmentd's version: the last version without and the first with it.
#[test]
fn rows_19_to_21_are_gated_by_version() {
    let flags = [
        r#"--clusterd-affinity={"podAffinity":{}}"#,
        r#"--clusterd-toleration={"key":"a"}"#,
        r#"--clusterd-toleration={"key":"b"}"#,
        "--clusterd-priority-class-name=high",
    ];
    let spec = json!({"podAnnotations": {"b": "2", "a": "1"}});
    for (name, before, first, expected) in [
        (
            "orchestrator-kubernetes-service-affinity",
            "v0.144.0-dev.0",
            "v0.144.0",
            vec![r#"={"podAffinity":{}}"#],
        ),
        (
            "orchestrator-kubernetes-service-tolerations",
            "v0.144.0-dev.0",
            "v0.144.0",
            vec![r#"=[{"key":"a"},{"key":"b"}]"#],
        ),
        (
            "orchestrator-kubernetes-priority-class-name",
            "v26.41.9",
            "v26.42.0-dev.0",
            vec!["=high"],
        ),
        (
            "orchestrator-kubernetes-service-annotation",
            "v0.154.0-dev.0",
            "v0.154.0",
            vec!["=a=1", "=b=2"],
        ),
    ] {
        let expected: Vec<_> = expected.iter().map(|value| format!("--{name}{value}")).collect();
        assert_eq!(named(name, before, &flags, &spec), [""; 0], "{name} in {before}");
        assert_eq!(named(name, first, &flags, &spec), expected, "{name} in {first}");
        assert_eq!(
            named(name, "unstable", &flags, &spec),
            expected,
            "{name} in a build of the day"
        );
        assert_eq!(named(name, first, &[], &json!({})), [""; 0], "{name} without settings");
    }
}

#[test]
fn row_20_scheduler() {
    let name = "orchestrator-kubernetes-scheduler-name";
    only_with(
        name,
        &["--scheduler-name=s"],
        &json!({}),
        &["--orchestrator-kubernetes-scheduler-name=s"],
    );
}

#[test]
fn row_22_pod_labels_follow_the_operators() {
    let name = "orchestrator-kubernetes-service-label";
    let found = named(name, "v0.139.0", &[], &json!({"podLabels": {"a": "1", "z": "2"}}));
    let keys: Vec<_> = found.iter().map(|arg| arg.split('=').nth(1).unwrap()).collect();
    assert_eq!(
        keys,
        [
            "materialize.cloud/mz-resource-id",
            "materialize.cloud/organization-name",
            "materialize.cloud/organization-namespace",
            "a",
            "z",
        ]
    );
}

#[test]
fn row_25_opentelemetry() {
    let flag = "--opentelemetry-endpoint=http://c:4317";
    only_with("opentelemetry-endpoint", &[flag], &json!({}), &[flag]);
}

#[test]
fn row_27_client_side_telemetry_needs_a_key() {
    only_with(
        "segment-api-key",
        &["--segment-api-key=k"],
        &json!({}),
        &["--segment-api-key=k"],
    );
    let both = ["--segment-api-key=k", "--segment-client-side"];
    only_with("segment-client-side", &both, &json!({}), &["--segment-client-side"]);
    assert_eq!(named("segment-client-side", NEWEST, &both[1..], &json!({})), [""; 0]);
    assert_eq!(named("segment-client-side", NEWEST, &both[..1], &json!({})), [""; 0]);
}

#[test]
fn row_28_tls_follows_the_issuer_of_either_level() {
    let default = r#"--default-certificate-specs={"internal":{"issuerRef":{"name":"ca"}}}"#;
    let own = json!({"internalCertificateSpec": {"issuerRef": {"name": "ca"}}});
    let names_only = json!({"internalCertificateSpec": {"dnsNames": ["a"]}});
    for (flags, spec, mode) in [
        (vec![], json!({}), "disable"),
        (vec![], names_only.clone(), "disable"),
        (vec![], own, "require"),
        (vec![default], json!({}), "require"),
        (vec![default], names_only, "require"),
    ] {
        assert_eq!(named("tls-mode", NEWEST, &flags, &spec), [format!("--tls-mode={mode}")]);
        let files = usize::from(mode == "require");
        assert_eq!(named("tls-cert", NEWEST, &flags, &spec).len(), files);
        assert_eq!(named("tls-key", NEWEST, &flags, &spec).len(), files);
    }
}

#[test]
fn row_29_ephemeral_volume_class() {
    let name = "orchestrator-kubernetes-ephemeral-volume-class";
    only_with(
        name,
        &["--ephemeral-volume-class=c"],
        &json!({}),
        &["--orchestrator-kubernetes-ephemeral-volume-class=c"],
    );
}

#[test]
fn row_31_system_parameters_since_26_1() {
    let spec = json!({"systemParameterConfigmapName": "parameters"});
    let interval = ["--config-sync-loop-interval=1s"];
    let file = ["--config-sync-file-path=/system-params/system-params.json"];
    only_with("config-sync-file-path", &[], &spec, &file);
    only_with("config-sync-loop-interval", &[], &spec, &interval);
    assert_eq!(named("config-sync-file-path", "v26.0.9", &[], &spec), [""; 0]);
    assert_eq!(named("config-sync-loop-interval", "v26.0.9", &[], &spec), [""; 0]);
    assert_eq!(named("config-sync-file-path", "v26.1.0-dev.0", &[], &spec), file);
}

#[test]
fn row_32_sentry() {
    let all = ["--sentry-dsn=https://k@s/1", "--sentry-environment=e"];
    only_with("sentry-dsn", &all[..1], &json!({}), &all[..1]);
    only_with("sentry-tag", &all[..1], &json!({}), &["--sentry-tag=region=local"]);
    only_with("sentry-environment", &all, &json!({}), &all[1..]);
    assert_eq!(named("sentry-environment", NEWEST, &all[1..], &json!({})), [""; 0]);
}

#[test]
fn rows_33_and_40_follow_the_configured_ports() {
    let flags = [
        "--environmentd-sql-port=1",
        "--environmentd-http-port=2",
        "--environmentd-internal-sql-port=3",
        "--environmentd-internal-http-port=4",
        "--environmentd-internal-persist-pubsub-port=5",
    ];
    let all = args("v0.146.0", &flags, &json!({}));
    assert!(all.contains(&"--persist-pubsub-url=http://mzk3x9q0ab7z-persist-pubsub-3:5".to_owned()));
    assert!(all.contains(&"--internal-persist-pubsub-listen-addr=0.0.0.0:5".to_owned()));
    assert_eq!(
        all[all.len() - 4..],
        [
            "--sql-listen-addr=0.0.0.0:1",
            "--http-listen-addr=0.0.0.0:2",
            "--internal-sql-listen-addr=0.0.0.0:3",
            "--internal-http-listen-addr=0.0.0.0:4",
        ]
    );
}

#[test]
fn row_35_console_redirect() {
    let flags = ["--internal-console-proxy-url=https://c"];
    let expected = ["--internal-console-redirect-url=https://c"];
    assert_eq!(
        named("internal-console-redirect-url", NEWEST, &flags, &json!({})),
        expected
    );
}

#[test]
fn rows_36_and_37_metrics() {
    let disable = "orchestrator-kubernetes-disable-pod-metrics-collection";
    assert_eq!(named(disable, NEWEST, &["--collect-pod-metrics"], &json!({})), [""; 0]);
    let scrape = "orchestrator-kubernetes-enable-prometheus-scrape-annotations";
    only_with(
        scrape,
        &["--enable-prometheus-scrape-annotations"],
        &json!({}),
        &[&format!("--{scrape}")],
    );
}

#[test]
fn row_38_licence_checks() {
    let flags = ["--disable-license-key-checks"];
    for (tag, passed) in [
        ("v0.142.9", false),
        ("v0.143.0-dev.0", false),
        ("v0.143.0", true),
        ("v0.152.9", true),
        ("v0.153.0-dev.0", true),
        ("v0.153.0", false),
        ("v26.42.0", false),
        ("unstable", false),
    ] {
        let found = named("disable-license-key-checks", tag, &flags, &json!({}));
        assert_eq!(found.len(), usize::from(passed), "{tag}");
        assert_eq!(
            named("disable-license-key-checks", tag, &[], &json!({})),
            [""; 0],
            "{tag} without the flag"
        );
    }
}

#[test]
fn row_39_extra_arguments_precede_only_the_listeners() {
    let all = args(
        NEWEST,
        &[],
        &json!({"environmentdExtraArgs": ["--b", "--a"], "authenticatorKind": "Password"}),
    );
    assert_eq!(
        all[all.len() - 4..],
        [
            "--b",
            "--a",
            "--listeners-config-path=/listeners/listeners.json",
            "--system-parameter-default=enable_password_auth=true",
        ]
    );
}

#[test]
fn row_40_listeners_and_password_login() {
    let password = "--system-parameter-default=enable_password_auth=true";
    for (kind, login) in [
        ("None", false),
        ("Frontegg", false),
        ("Password", true),
        ("Sasl", true),
        ("Oidc", true),
    ] {
        let spec = json!({"authenticatorKind": kind});
        for (tag, file) in [
            ("v0.146.9", false),
            ("v0.147.0-dev.0", true),
            ("v0.147.0", true),
            ("unstable", true),
        ] {
            let all = args(tag, &[], &spec);
            let has = |arg: &str| all.iter().any(|other| other == arg);
            assert_eq!(
                has("--listeners-config-path=/listeners/listeners.json"),
                file,
                "{tag} {kind}"
            );
            assert_eq!(has("--sql-listen-addr=0.0.0.0:6875"), !file, "{tag} {kind}");
            assert_eq!(has(password), file && login, "{tag} {kind}");
        }
    }
}
