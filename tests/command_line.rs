//! The binary as a user meets it: exit codes, messages and environment variables (docs/reference/flags.md).
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    net::TcpListener,
    process::{Command, Output},
};

/// Runs the binary with the required flags, on ports of its own, where there is no way to an API server: at the
/// latest this ends it, with status 1.
fn run(flags: &[&str], environment: &[(&str, &str)]) -> Output {
    let required = ["--cloud-provider=local", "--region=r", "--console-image-tag-default=t"];
    let listen = [
        "--metrics-listen-address=127.0.0.1:0",
        "--profiling-listen-address=127.0.0.1:0",
    ];
    Command::new(env!("CARGO_BIN_EXE_orchestratord"))
        .args(required.iter().chain(&listen).chain(flags))
        .env_clear()
        .env("KUBECONFIG", "/nonexistent/kubeconfig")
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

/// The exit code and standard error.
fn outcome(flags: &[&str], environment: &[(&str, &str)]) -> (i32, String) {
    let output = run(flags, environment);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// The line that ends a process whose arguments were fine but can't be used.
fn fatal(flags: &[&str], environment: &[(&str, &str)]) -> String {
    let (code, text) = outcome(flags, environment);
    assert_eq!(code, 1, "{text}");
    let lines: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("orchestratord: fatal: "))
        .collect();
    assert_eq!(lines.len(), 1, "{text}");
    lines[0].to_owned()
}

#[test]
fn a_usage_error_ends_with_status_2() {
    let (code, text) = outcome(&["--no-such-flag"], &[]);
    assert_eq!(code, 2);
    assert!(text.contains("--no-such-flag") && text.contains("Usage:"), "{text}");
}

#[test]
fn version_and_help_go_to_standard_output() {
    for (flag, word) in [("--version", "orchestratord "), ("--help", "--cloud-provider")] {
        let output = run(&[flag], &[]);
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains(word), "{flag}");
    }
}

#[test]
fn without_a_way_to_the_api_server_both_causes_are_told() {
    let line = fatal(&["--kubernetes-context=mine"], &[]);
    for word in [
        "\"mine\"",
        "/nonexistent/kubeconfig",
        "in-cluster",
        "--kubernetes-context",
    ] {
        assert!(line.contains(word), "{word}: {line}");
    }
}

#[test]
fn a_port_in_use_is_told_with_its_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let line = fatal(&["--profiling-listen-address", &address], &[]);
    for word in [&address, "--profiling-listen-address", "in use"] {
        assert!(line.contains(word), "{word}: {line}");
    }
}

#[test]
fn only_prefixed_variables_are_read_and_the_command_line_goes_first() {
    assert_eq!(outcome(&[], &[("ORCHESTRATORD_LOG_FORMAT", "xml")]).0, 2);
    fatal(
        &[],
        &[
            ("LOG_FORMAT", "xml"),
            ("ORCHESTRATORD_REGION", "x"),
            ("ORCHESTRATORD_METRICS_LISTEN_ADDRESS", "x"),
        ],
    );
    let from_environment = fatal(&[], &[("ORCHESTRATORD_KUBERNETES_CONTEXT", "variable")]);
    assert!(from_environment.contains("\"variable\""), "{from_environment}");
    let from_flag = fatal(
        &["--kubernetes-context=flag"],
        &[("ORCHESTRATORD_KUBERNETES_CONTEXT", "variable")],
    );
    assert!(from_flag.contains("\"flag\""), "{from_flag}");
}

#[test]
fn the_identity_comes_from_the_flag_the_variable_or_the_host_name() {
    let variable = "ORCHESTRATORD_LEADER_ELECTION_IDENTITY";
    let flag = "--leader-election-identity=from-flag";
    for (flags, environment, identity) in [
        (
            &[flag][..],
            &[(variable, "from-variable"), ("HOSTNAME", "from-host")][..],
            "from-flag",
        ),
        (
            &[],
            &[(variable, "from-variable"), ("HOSTNAME", "from-host")],
            "from-variable",
        ),
        (&[], &[("HOSTNAME", "from-host")], "from-host"),
        (&[], &[("HOSTNAME", "")], "orchestratord-"),
    ] {
        let (_, text) = outcome(flags, environment);
        assert!(text.contains(&format!("identity=\"{identity}")), "{identity}: {text}");
    }
    for environment in [&[(variable, "")][..], &[(variable, ""), ("HOSTNAME", "from-host")]] {
        let line = fatal(&[], environment);
        assert!(line.contains(variable) && line.contains("empty"), "{line}");
    }
}

#[test]
fn the_log_is_lines_of_json_where_that_is_asked_for() {
    let (_, text) = outcome(&["--log-format=json"], &[("HOSTNAME", "host")]);
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["fields"]["identity"], "host");
    let (_, text) = outcome(
        &["--log-prefix=op: ", "--startup-log-filter=INFO,mz_orchestratord=TRACE"],
        &[],
    );
    assert!(text.starts_with("op: "), "{text}");
    let (_, text) = outcome(&["--startup-log-filter=off"], &[]);
    assert_eq!(text.lines().count(), 1, "nothing but the fatal line: {text}");
}

#[test]
fn a_watcher_that_does_not_exist_yet_is_not_switched_on_in_silence() {
    let line = fatal(
        &[
            "--cloud-provider=gcp",
            "--install-v1-crd",
            "--webhook-service-name=s",
            "--webhook-service-namespace=n",
            "--enable-gcp-node-upgrade-rollout-trigger",
            "--gcp-node-upgrade-notification-subscription=projects/p/subscriptions/s",
            "--gcp-cluster-name=c",
            "--gcp-cluster-location=l",
        ],
        &[],
    );
    assert!(line.contains("--enable-gcp-node-upgrade-rollout-trigger"), "{line}");
    assert!(line.contains("no watcher of node upgrades yet"), "{line}");
}
