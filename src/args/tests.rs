//! The rules of parsing, one test per rule. Expected values are those of docs/reference/flags.md.

use std::time::Duration;

use clap::{CommandFactory as _, Parser as _, error::ErrorKind};

use super::*;
use crate::args::node_upgrades::NodeUpgradesError;

const REQUIRED: [&str; 4] = [
    "orchestratord",
    "--cloud-provider=aws",
    "--region=r",
    "--console-image-tag-default=t",
];

fn parse(flags: &[&str]) -> Result<Args, clap::Error> {
    Args::try_parse_from(REQUIRED.iter().chain(flags))
}

fn args(flags: &[&str]) -> Args {
    parse(flags).unwrap_or_else(|error| panic!("{flags:?}: {error}"))
}

fn config(flags: &[&str]) -> Result<Config, Error> {
    Config::new(args(flags), Some("host"))
}

/// The flags are a usage error whose text names all of `words`.
fn refused(flags: &[&str], words: &[&str]) {
    let error = parse(flags).err().unwrap_or_else(|| panic!("{flags:?} parsed"));
    assert_eq!(error.exit_code(), 2, "{flags:?}");
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{flags:?}: {word} is not in: {text}");
    }
}

/// A JSON or Debug view of one value, so that tables can hold values of different types.
fn shown<T: std::fmt::Debug>(value: T) -> String {
    format!("{value:?}")
}

#[test]
fn the_command_is_well_formed() {
    Args::command().debug_assert();
}

#[test]
fn the_three_required_flags_are_enough_and_each_is_required() {
    let parsed = args(&[]);
    assert!(!parsed.webhook.install_v1_crd);
    for missing in 1..REQUIRED.len() {
        let some = REQUIRED
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != missing)
            .map(|(_, flag)| flag);
        let error = Args::try_parse_from(some).unwrap_err();
        assert_eq!(
            (error.kind(), error.exit_code()),
            (ErrorKind::MissingRequiredArgument, 2)
        );
    }
}

#[test]
fn defaults() {
    let config = config(&[]).unwrap();
    let webhook = args(&[]).webhook;
    for (value, expected) in [
        (shown(args(&[]).process.kubernetes_context), "\"minikube\""),
        (shown(config.profiling_listen_address), "[::]:8004"),
        (shown(config.metrics_listen_address), "[::]:3100"),
        (shown(webhook.webhook_listen_address), "[::]:8001"),
        (shown(webhook.webhook_service_port), "8001"),
        (shown(&webhook.tls_ca), "\"/etc/tls/ca.crt\""),
        (shown(&webhook.tls_cert), "\"/etc/tls/tls.crt\""),
        (shown(&webhook.tls_key), "\"/etc/tls/tls.key\""),
        (shown(webhook.webhook_cert_reload_interval), "3600s"),
        (shown(&config.additional_crd_columns), "[]"),
        (shown(config.cloud.secrets_controller), "Kubernetes"),
        (shown(&config.cloud.environmentd_availability_zones), "None"),
        (shown(config.images.image_pull_policy), "Always"),
        (
            shown(config.environmentd.internal_console_proxy_url),
            "\"https://console.materialize.com\"",
        ),
        (
            shown(config.environmentd.environmentd_allowed_origins),
            "[\"http://local.dev.materialize.com:3000\", \"http://local.mtrlz.com:3000\", \
             \"http://localhost:3000\", \"https://staging.console.materialize.com\"]",
        ),
        (shown(config.environmentd.statement_logging_max_sample_rate), "None"),
        (shown(config.ports.environmentd_sql_port), "6875"),
        (shown(config.ports.environmentd_http_port), "6876"),
        (shown(config.ports.environmentd_internal_sql_port), "6877"),
        (shown(config.ports.environmentd_internal_http_port), "6878"),
        (shown(config.ports.environmentd_internal_persist_pubsub_port), "6879"),
        (shown(config.ports.balancerd_sql_port), "6875"),
        (shown(config.ports.balancerd_http_port), "6876"),
        (shown(config.ports.balancerd_internal_http_port), "8080"),
        (shown(config.ports.console_http_port), "8080"),
        (shown(config.telemetry.startup_log_filter.as_str()), "\"info\""),
        (shown(config.telemetry.log_format), "Text"),
        (
            shown(config.telemetry.startup_opentelemetry_filter.as_str()),
            "\"info\"",
        ),
        (shown(config.telemetry.opentelemetry_max_batch_queue_size), "2048"),
        (shown(config.telemetry.opentelemetry_max_export_batch_size), "512"),
        (shown(config.telemetry.opentelemetry_max_concurrent_exports), "1"),
        (shown(config.telemetry.opentelemetry_sched_delay), "5s"),
        (shown(config.telemetry.opentelemetry_max_export_timeout), "30s"),
        (shown(config.node_upgrades), "None"),
    ] {
        assert_eq!(value, expected);
    }
}

#[test]
fn values_stand_after_an_equals_sign_or_as_the_next_argument() {
    let parsed = args(&[
        "--install-v1-crd",
        "--webhook-service-name",
        "svc",
        "--webhook-service-namespace=ns",
    ]);
    let webhook = Config::new(parsed, None).unwrap().webhook.unwrap();
    assert_eq!(
        (webhook.service_name.as_str(), webhook.service_namespace.as_str()),
        ("svc", "ns")
    );
}

#[test]
fn presence_flags_take_no_value() {
    for flag in [
        "--install-v1-crd=true",
        "--create-balancers=false",
        "--enable-security-context=1",
    ] {
        refused(&[flag], &[flag.split('=').next().unwrap()]);
    }
}

#[test]
fn of_a_repeated_flag_the_last_counts_and_lists_collect() {
    let parsed = args(&[
        "--region=r1",
        "--region=r2",
        "--cloud-provider=gcp",
        "--create-console",
        "--create-console",
        "--image-pull-policy=never",
        "--image-pull-policy=if-not-present",
        "--clusterd-toleration={\"key\":\"a\"}",
        "--clusterd-toleration={\"key\":\"b\"}",
        "--network-policies-ingress-cidrs=10.0.0.0/8",
        "--network-policies-ingress-cidrs=::/0",
        "--environmentd-allowed-origins=https://only",
    ]);
    assert_eq!(
        (parsed.cloud.region.as_str(), parsed.cloud.cloud_provider),
        ("r2", CloudProvider::Gcp)
    );
    assert!(parsed.features.create_console);
    assert_eq!(parsed.images.image_pull_policy, ImagePullPolicy::IfNotPresent);
    let keys: Vec<_> = parsed
        .scheduling
        .clusterd_toleration
        .iter()
        .map(|item| item.key.as_deref())
        .collect();
    assert_eq!(keys, [Some("a"), Some("b")]);
    assert_eq!(
        parsed.network_policies.network_policies_ingress_cidrs,
        ["10.0.0.0/8", "::/0"]
    );
    assert_eq!(
        parsed.environmentd.environmentd_allowed_origins,
        ["https://only"],
        "replaces the default list"
    );
}

#[test]
fn key_value_pairs_split_at_the_first_equals_sign_and_never_at_commas() {
    for (given, key, value) in [
        ("a=b", "a", "b"),
        ("a=b=c,d=e", "a", "b=c,d=e"),
        ("a=", "a", ""),
        ("a==", "a", "="),
    ] {
        let parsed = Config::new(args(&["--orchestratord-pod-selector-labels", given]), None).unwrap();
        let labels: Vec<_> = parsed.operator_pod_labels.iter().collect();
        assert_eq!(labels, [(&key.to_owned(), &value.to_owned())], "{given}");
    }
    for flag in [
        "--console-node-selector=a",
        "--console-image-tag-map=a",
        "--orchestratord-pod-selector-labels==b",
    ] {
        refused(&[flag], &[flag.split('=').next().unwrap()]);
    }
    let map = config(&["--console-image-tag-map=v1=a", "--console-image-tag-map=v1=b"])
        .unwrap()
        .images
        .console_image_tag_map;
    assert_eq!(map["v1"], "b", "the last of equal keys counts");
}

#[test]
fn json_may_have_white_space_around_it() {
    let columns =
        "--additional-crd-columns=\n [{\"name\":\"N\",\"type\":\"string\",\"jsonPath\":\".x\",\"priority\":1}]\n";
    let parsed = config(&[
        columns,
        "--environmentd-affinity= {\"nodeAffinity\":{}}\n",
        "--balancerd-default-resources={\"limits\":{\"memory\":\"1Gi\"}}\n",
        "--environmentd-cluster-replica-sizes= {\"25cc\": {\"workers\": 1}} \n",
    ])
    .unwrap();
    let column = &parsed.additional_crd_columns[0];
    assert_eq!(
        (column.name.as_str(), column.json_path.as_str(), column.priority),
        ("N", ".x", Some(1))
    );
    assert!(parsed.scheduling.environmentd.affinity.unwrap().node_affinity.is_some());
    assert_eq!(
        parsed.scheduling.balancerd.default_resources.unwrap().limits.unwrap()["memory"].0,
        "1Gi"
    );
    let sizes = parsed.sizing.environmentd_cluster_replica_sizes;
    assert_eq!(
        sizes.as_deref(),
        Some("{\"25cc\": {\"workers\": 1}}"),
        "passed on as it is"
    );
}

#[test]
fn wrong_json_names_the_flag() {
    for flag in [
        "--environmentd-affinity={",
        "--console-toleration=[]",
        "--balancerd-default-resources=1Gi",
        "--default-certificate-specs=[]",
        "--environmentd-cluster-replica-sizes=[]",
        "--additional-crd-columns={}",
    ] {
        refused(&[flag], &[flag.split('=').next().unwrap()]);
    }
    refused(
        &["--additional-crd-columns=[{\"name\":\"N\",\"type\":\"string\"}]"],
        &["column 0", "jsonPath"],
    );
}

#[test]
fn the_cloud_provider_is_known_in_any_case() {
    for (name, cloud) in [
        ("local", false),
        ("docker", false),
        ("mzcompose", false),
        ("cloudtest", false),
        ("aws", true),
        ("gcp", true),
        ("azure", true),
        ("generic", true),
    ] {
        for spelling in [name.to_owned(), name.to_uppercase()] {
            let provider = args(&["--cloud-provider", &spelling]).cloud.cloud_provider;
            assert_eq!((provider.as_str(), provider.is_cloud()), (name, cloud));
        }
    }
    refused(&["--cloud-provider=ibm"], &["ibm", "generic"]);
}

#[test]
fn the_pull_policy_is_in_kebab_case() {
    for (name, kubernetes) in [
        ("always", "Always"),
        ("if-not-present", "IfNotPresent"),
        ("never", "Never"),
    ] {
        let policy = args(&["--image-pull-policy", name]).images.image_pull_policy;
        assert_eq!((policy.as_kebab(), policy.as_kubernetes()), (name, kubernetes));
    }
    for name in ["Always", "IfNotPresent", "ALWAYS"] {
        refused(&["--image-pull-policy", name], &["if-not-present"]);
    }
}

#[test]
fn numbers_have_bounds() {
    for (text, value) in [("0", 0.0), ("1", 1.0), ("0.01", 0.01)] {
        let rate = args(&["--statement-logging-max-sample-rate", text])
            .environmentd
            .statement_logging_max_sample_rate;
        assert_eq!(rate.map(f64::to_bits), Some(f64::to_bits(value)), "{text}");
    }
    for text in ["1.1", "-0.1", "NaN", "inf", "", "x"] {
        refused(
            &[&format!("--statement-logging-max-sample-rate={text}")],
            &["from 0 to 1"],
        );
    }
    let rate = args(&["--statement-logging-target-data-rate=1048576"])
        .environmentd
        .statement_logging_target_data_rate;
    assert_eq!(rate, Some(1_048_576));
    for text in ["0", "-1", "1.5", "1e6", "1.048576e+06"] {
        refused(
            &[&format!("--statement-logging-target-data-rate={text}")],
            &["--statement-logging-target-data-rate"],
        );
    }
    refused(&["--environmentd-sql-port=65536"], &["--environmentd-sql-port"]);
}

#[test]
fn durations_are_as_people_write_them() {
    for (text, seconds) in [("1h", 3600), ("30m", 1800), ("90s", 90), ("1h 30m", 5400)] {
        let interval = args(&["--webhook-cert-reload-interval", text])
            .webhook
            .webhook_cert_reload_interval;
        assert_eq!(interval, Duration::from_secs(seconds), "{text}");
    }
    for text in ["0s", "1", "soon"] {
        refused(
            &["--webhook-cert-reload-interval", text],
            &["--webhook-cert-reload-interval"],
        );
    }
}

#[test]
fn v1_needs_the_service() {
    refused(
        &["--install-v1-crd"],
        &["--webhook-service-name", "--webhook-service-namespace"],
    );
    refused(
        &["--install-v1-crd", "--webhook-service-name=a"],
        &["--webhook-service-namespace"],
    );
    let without_v1 = config(&["--webhook-service-name=a", "--webhook-service-namespace=b"]).unwrap();
    assert!(without_v1.webhook.is_none());
}

#[test]
fn address_ranges_are_checked() {
    for text in ["0.0.0.0/0", "10.1.2.3/32", "fd00::/8"] {
        assert_eq!(
            args(&["--network-policies-egress-cidrs", text])
                .network_policies
                .network_policies_egress_cidrs,
            [text]
        );
    }
    for text in ["10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/8,10.1.0.0/16", "x/8"] {
        refused(
            &["--network-policies-egress-cidrs", text],
            &["--network-policies-egress-cidrs"],
        );
    }
}

#[test]
fn only_the_lists_about_traces_split_at_commas() {
    let telemetry = args(&[
        "--opentelemetry-endpoint=http://collector:4317",
        "--opentelemetry-header=a=1,b=2",
        "--opentelemetry-header=c=3",
        "--opentelemetry-resource=x=1,y=2",
        "--sentry-tag=t=1,u=2",
    ])
    .telemetry;
    let headers: Vec<_> = telemetry
        .opentelemetry_header
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose()))
        .collect();
    assert_eq!(headers, [("a", "1"), ("b", "2"), ("c", "3")]);
    assert_eq!(
        (telemetry.opentelemetry_resource.len(), telemetry.sentry_tag.len()),
        (2, 2)
    );
    let secrets = args(&["--aws-secrets-controller-tags=a,b"])
        .cloud
        .aws_secrets_controller_tags;
    assert_eq!(secrets.as_deref(), Some(&["a,b".to_owned()][..]));
}

#[test]
fn settings_of_traces_need_the_endpoint_where_they_are_given() {
    for flag in [
        "--opentelemetry-header=a=1",
        "--startup-opentelemetry-filter=debug",
        "--opentelemetry-max-batch-queue-size=1",
        "--opentelemetry-max-export-batch-size=1",
        "--opentelemetry-max-concurrent-exports=1",
        "--opentelemetry-sched-delay=1s",
        "--opentelemetry-max-export-timeout=1s",
    ] {
        refused(&[flag], &["--opentelemetry-endpoint"]);
        args(&[flag, "--opentelemetry-endpoint=https://collector:4317/x"]);
    }
    args(&["--opentelemetry-resource=a=1"]);
    refused(
        &["--opentelemetry-endpoint=collector"],
        &["--opentelemetry-endpoint", "http://"],
    );
}

#[test]
fn the_log_filter_means_our_modules_by_the_old_name() {
    let level = |filter: &str, target: &str| {
        let filter: Filter = filter.parse().unwrap();
        ["error", "warn", "info", "debug", "trace"]
            .into_iter()
            .rfind(|level| filter.targets().would_enable(target, &level.parse().unwrap()))
            .unwrap_or("off")
    };
    let chart = "INFO,mz_orchestratord=TRACE";
    for (filter, target, expected) in [
        (chart, "kube_client", "info"),
        (chart, "orchestratord::run", "trace"),
        (chart, "states::lease", "trace"),
        (
            "mz_orchestratord::webhook=debug,warn",
            "orchestratord::webhook::server",
            "debug",
        ),
        ("mz_orchestratord::webhook=debug,warn", "orchestratord::run", "warn"),
        ("mz_orchestratord_other=debug", "orchestratord", "off"),
        ("orchestratord=error, kube=Debug", "orchestratord", "error"),
        ("off", "orchestratord", "off"),
    ] {
        assert_eq!(level(filter, target), expected, "{filter} for {target}");
    }
    assert_eq!(
        args(&["--startup-log-filter", chart])
            .telemetry
            .startup_log_filter
            .as_str(),
        chart,
        "kept as given"
    );
    for filter in ["verbose", "a=b", "mz_orchestratord", "info;debug", "a[span]=info=debug"] {
        refused(&["--startup-log-filter", filter], &["--startup-log-filter", "level"]);
    }
}

#[test]
fn certificate_defaults_are_independent_and_ignore_unknown_members() {
    let specs = |json: &str| {
        args(&["--default-certificate-specs", json])
            .certificates
            .default_certificate_specs
    };
    assert_eq!(specs("{}"), CertificateDefaults::default());
    let some = specs("{\"internal\":{\"issuerRef\":{\"name\":\"i\"}},\"unknown\":1}\n");
    assert!(some.internal.is_some() && some.balancerd_external.is_none() && some.console_external.is_none());
}

#[test]
fn the_legacy_flag_and_flags_without_effect_are_accepted() {
    args(&[
        "--disable-statement-logging",
        "--disable-authentication",
        "--disable-license-key-checks",
    ]);
}

#[test]
fn unknown_flags_and_arguments_are_refused() {
    refused(&["--unknown"], &["--unknown"]);
    refused(&["argument"], &["argument"]);
}

#[test]
fn help_and_version_say_what_they_should() {
    let version = parse(&["--version"]).unwrap_err();
    assert_eq!((version.kind(), version.exit_code()), (ErrorKind::DisplayVersion, 0));
    assert_eq!(
        version.to_string(),
        format!("orchestratord {}\n", env!("CARGO_PKG_VERSION"))
    );
    let help = parse(&["--help"]).unwrap_err();
    assert_eq!((help.kind(), help.exit_code()), (ErrorKind::DisplayHelp, 0));
    let text = help.to_string();
    for hidden in [
        "--disable-license-key-checks",
        "--additional-crd-columns",
        "--disable-statement-logging",
    ] {
        assert!(!text.contains(hidden), "{hidden}");
    }
    assert!(text.contains("--environmentd-toleration"));
}

#[test]
fn exactly_these_flags_have_a_variable() {
    let command = Args::command();
    let declared: Vec<_> = command
        .get_arguments()
        .filter_map(|arg| Some((arg.get_long()?, arg.get_env()?.to_str()?)))
        .map(|(flag, variable)| (flag.to_owned(), variable.to_owned()))
        .collect();
    let expected = [
        "kubernetes-context",
        "leader-election-identity",
        "startup-log-filter",
        "log-format",
        "log-prefix",
        "opentelemetry-endpoint",
        "opentelemetry-header",
        "startup-opentelemetry-filter",
        "opentelemetry-resource",
        "opentelemetry-max-batch-queue-size",
        "opentelemetry-max-export-batch-size",
        "opentelemetry-max-concurrent-exports",
        "opentelemetry-sched-delay",
        "opentelemetry-max-export-timeout",
        "sentry-dsn",
        "sentry-environment",
        "sentry-tag",
    ]
    .map(|flag| {
        (
            flag.to_owned(),
            format!("ORCHESTRATORD_{}", flag.replace('-', "_").to_uppercase()),
        )
    });
    assert_eq!(declared, expected);
}

#[test]
fn gke_flags_are_judged_only_while_the_watcher_is_on() {
    let on = "--enable-gcp-node-upgrade-rollout-trigger";
    let v1 = [
        "--install-v1-crd",
        "--webhook-service-name=a",
        "--webhook-service-namespace=b",
    ];
    let gke = |subscription: &'static str, location: &'static str, more: &[&'static str]| {
        let name = "--gcp-node-upgrade-notification-subscription";
        let flags = [
            &[
                on,
                name,
                subscription,
                "--gcp-cluster-name=c",
                "--gcp-cluster-location",
                location,
            ],
            more,
        ]
        .concat();
        match config(&flags) {
            Ok(config) => Ok(config.node_upgrades.unwrap()),
            Err(Error::NodeUpgrades(error)) => Err(error),
            Err(other) => panic!("{other}"),
        }
    };
    let gcp = [
        &v1[..],
        &["--cloud-provider=gcp", "--gcp-node-upgrade-watched-node-pool=p"],
    ]
    .concat();
    let good = gke("projects/p/subscriptions/s", "europe-west1", &gcp).unwrap();
    assert_eq!((good.project.as_str(), good.subscription.as_str()), ("p", "s"));
    assert_eq!(good.watched_node_pools, ["p"]);
    assert_eq!(
        gke("projects/p/subscriptions/s", "l", &v1),
        Err(NodeUpgradesError::CloudProvider(CloudProvider::Aws))
    );
    assert_eq!(
        gke("projects/p/subscriptions/s", "l", &["--cloud-provider=gcp"]),
        Err(NodeUpgradesError::V1NotInstalled)
    );
    assert_eq!(
        gke("projects/p/subscriptions/s", "", &gcp),
        Err(NodeUpgradesError::Missing("--gcp-cluster-location"))
    );
    for wrong in [
        "s",
        "projects//subscriptions/s",
        "projects/p/subscriptions/s/x",
        "projects/p/topics/t",
    ] {
        assert_eq!(
            gke(wrong, "l", &gcp),
            Err(NodeUpgradesError::Subscription(wrong.to_owned()))
        );
    }
    refused(
        &[on],
        &[
            "--gcp-node-upgrade-notification-subscription",
            "--gcp-cluster-name",
            "--gcp-cluster-location",
        ],
    );
    let off = config(&[
        "--gcp-node-upgrade-notification-subscription=nonsense",
        "--gcp-cluster-name=",
    ])
    .unwrap();
    assert_eq!(off.node_upgrades, None);
}

#[test]
fn a_public_key_that_is_given_is_never_skipped() {
    let missing = config(&["--license-key-public-key=/nowhere/key.pem"]).unwrap_err();
    assert!(missing.to_string().contains("/nowhere/key.pem"), "{missing}");
    let file = std::env::temp_dir().join(format!("orchestratord-args-{}.pem", std::process::id()));
    std::fs::write(&file, "no key").unwrap();
    let invalid = config(&["--license-key-public-key", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    assert!(invalid.unwrap_err().to_string().contains("no RSA public key"));
}

#[test]
fn a_directory_of_public_keys_is_read_whole_and_never_empty() {
    let directory = std::env::temp_dir().join(format!("orchestratord-args-{}-keys", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("..data"), "bookkeeping of a mounted Secret").unwrap();
    let empty = config(&["--license-key-public-key", directory.to_str().unwrap()]);
    std::fs::write(directory.join("next"), "no key").unwrap();
    let invalid = config(&["--license-key-public-key", directory.to_str().unwrap()]);
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(empty.unwrap_err().to_string().contains("without any file"));
    assert!(
        invalid
            .unwrap_err()
            .to_string()
            .contains("next holds no RSA public key")
    );
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    let parsed = args(&[
        "--segment-api-key=hush",
        "--sentry-dsn=https://hush@sentry/1",
        "--opentelemetry-endpoint=http://c:1",
        "--opentelemetry-header=authorization=hush",
    ]);
    assert!(!format!("{parsed:?}").contains("hush"));
}

/// Every flag stands on the page for users, with its default and its variable, and the page names no other.
#[test]
fn the_reference_page_lists_exactly_these_flags() {
    let page = include_str!("../../docs/reference/flags.md");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `--")).collect();
    let mut command = Args::command();
    command.build();
    let mut flags = std::collections::BTreeSet::new();
    for arg in command
        .get_arguments()
        .filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version"))
    {
        let flag = format!("`--{}`", arg.get_long().unwrap());
        let row = rows
            .iter()
            .find(|row| row.split('|').nth(1).unwrap().contains(&flag))
            .unwrap_or_else(|| panic!("{flag}"));
        if arg.get_action().takes_values() {
            let default = row.split('|').nth(2).unwrap();
            for value in arg.get_default_values() {
                assert!(
                    default.contains(&format!("`{}`", value.to_str().unwrap())),
                    "{flag}: {default}"
                );
            }
            assert_eq!(default.trim() == "required", arg.is_required_set(), "{flag}");
        }
        if let Some(variable) = arg.get_env() {
            assert!(
                row.contains(&format!("`{}`", variable.to_str().unwrap())),
                "{flag}: {row}"
            );
        }
        flags.insert(flag);
    }
    let listed = rows.iter().flat_map(|row| row.split('|').nth(1).unwrap().split(','));
    let listed: std::collections::BTreeSet<_> = listed.map(|flag| flag.trim().to_owned()).collect();
    assert_eq!(listed, flags);
}
