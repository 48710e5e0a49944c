#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use super::*;

/// What the operator passes to v26.43.0 with the chart's defaults, shortened to one size.
const ARGS: &[&str] = &[
    "--helm-chart-version=v0.1.0",
    "--environment-id=local-kind-12345678-1234-1234-1234-123456789012-0",
    "--clusterd-image=localhost:5000/materialize/clusterd:v26.43.0",
    r#"--cluster-replica-sizes={"25cc":{"cpu_exclusive":false,"cpu_limit":0.5,"credits_per_hour":"0.25","disk_limit":"0","is_cc":true,"memory_limit":"3881MiB","scale":1,"selectors":{"materialize.cloud/swap":"true"},"swap_enabled":true,"workers":1}}"#,
    "--bootstrap-default-cluster-replica-size=25cc",
    "--bootstrap-builtin-system-cluster-replica-size=25cc",
    "--bootstrap-builtin-system-cluster-replication-factor=0",
    "--cors-allowed-origin=http://localhost:3000",
    "--cors-allowed-origin=http://local.mtrlz.com:3000",
    "--secrets-controller=kubernetes",
    "--system-parameter-default=allowed_cluster_replica_sizes='25cc'",
    "--system-parameter-default=cluster_enable_topology_spread=false",
    "--system-parameter-default=statement_logging_max_sample_rate=0.99",
    "--system-parameter-default=enable_rbac_checks=false",
    "--persist-isolated-runtime-threads=-1",
    "--orchestrator=kubernetes",
    "--orchestrator-kubernetes-service-account=mz",
    "--orchestrator-kubernetes-image-pull-policy=if-not-present",
    "--orchestrator-kubernetes-service-label=materialize.cloud/mz-resource-id=abcdefghij",
    "--orchestrator-kubernetes-name-prefix=mzabcdefghij-",
    "--log-format=json",
    "--opentelemetry-resource=organization_id=12345678-1234-1234-1234-123456789012",
    "--opentelemetry-resource=environment_name=mz",
    "--tls-mode=disable",
    "--orchestrator-kubernetes-service-fs-group=999",
    "--persist-pubsub-url=http://mzabcdefghij-persist-pubsub-1:6879",
    "--internal-persist-pubsub-listen-addr=0.0.0.0:6879",
    "--deploy-generation=1",
    "--internal-console-redirect-url=https://console.materialize.com",
    "--orchestrator-kubernetes-disable-pod-metrics-collection",
    "--listeners-config-path=/listeners/listeners.json",
];

const LISTENERS: &str = r#"{"sql":{"external":{"addr":"0.0.0.0:6875","authenticator_kind":"KIND","allowed_roles":"NormalAndInternal","enable_tls":false}},
 "http":{"external":{"addr":"0.0.0.0:6876","authenticator_kind":"None","enable_tls":false,
  "routes":{"base":{"enabled":false},"webhook":{"enabled":false},"internal":{"enabled":false},"metrics":{"enabled":false},
   "profiling":{"enabled":false},"mcp_agent":{"enabled":false},"mcp_developer":{"enabled":false},"console_config":{"enabled":false}}}}}"#;

/// A command line, variables and files, each of which a case changes.
struct Case {
    args: Vec<String>,
    variables: BTreeMap<String, String>,
    root: tempdir::Dir,
}

/// A folder that goes away with its owner.
mod tempdir {
    use std::path::PathBuf;

    pub(super) struct Dir(pub(super) PathBuf);

    impl Dir {
        pub(super) fn new() -> Self {
            let path = std::env::temp_dir().join(format!("standins-{}", uuid::Uuid::new_v4()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        pub(super) fn write(&self, path: &str, content: &str) {
            let path = self.0.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }
}

impl Case {
    fn new() -> Self {
        let root = tempdir::Dir::new();
        root.write("listeners/listeners.json", &LISTENERS.replace("KIND", "None"));
        root.write("license_key/license_key", "a.b.c\n");
        let variables = [
            ("STANDIN_VERSION", "v26.43.0"),
            ("STANDIN_ROOT", root.0.to_str().unwrap()),
            ("MZ_METADATA_BACKEND_URL", "postgres://metadata"),
            ("MZ_PERSIST_BLOB_URL", "s3://blob"),
            ("MZ_LICENSE_KEY", "/license_key/license_key"),
        ];
        let variables = variables
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Self {
            args: ARGS.iter().map(|arg| (*arg).to_owned()).collect(),
            variables,
            root,
        }
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    fn without(mut self, start: &str) -> Self {
        let before = self.args.len();
        self.args.retain(|arg| !arg.starts_with(start));
        assert!(self.args.len() < before, "{start} was not there");
        self
    }

    fn version(self, tag: &str) -> Self {
        self.without("--clusterd-image")
            .arg(&format!("--clusterd-image=r/clusterd:{tag}"))
            .set("STANDIN_VERSION", tag)
    }

    fn load(&self) -> anyhow::Result<Config> {
        Config::load(&self.args, &Host::new(self.variables.clone()))
    }

    #[track_caller]
    fn fails(&self, expected: &str) {
        let reason = format!("{:#}", self.load().unwrap_err());
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn the_default_command_line_is_accepted() {
    let config = Case::new().load().unwrap();
    assert_eq!(config.args.deploy_generation, 1);
    assert_eq!(config.parameter("enable_rbac_checks"), Some("false"));
    assert_eq!(config.listeners.sql[0].addr, "0.0.0.0:6875");
}

#[test]
fn a_flag_that_is_unknown_doubled_missing_or_malformed_is_refused() {
    Case::new().arg("--no-such-flag").fails("--no-such-flag");
    Case::new().arg("positional").fails("positional");
    Case::new()
        .arg("--deploy-generation=2")
        .fails("cannot be used multiple times");
    Case::new().without("--deploy-generation").fails("--deploy-generation");
    Case::new()
        .without("--deploy-generation")
        .arg("--deploy-generation=-1")
        .fails("-1");
    Case::new()
        .without("--environment-id")
        .arg("--environment-id=local-kind-x-0")
        .fails("PROVIDER-REGION-UUID-ORDINAL");
    Case::new()
        .without("--secrets-controller")
        .arg("--secrets-controller=vault")
        .fails("vault");
    Case::new()
        .without("--tls-mode")
        .arg("--tls-mode=require")
        .fails("--tls-cert and --tls-key");
    Case::new().arg("--tls-cert=/c").fails("--tls-mode=disable");
    Case::new().arg("--segment-client-side").fails("--segment-api-key");
    Case::new()
        .arg("--segment-client-side=true")
        .fails("--segment-client-side");
    Case::new()
        .arg("--config-sync-file-path=/f")
        .fails("--config-sync-loop-interval");
    Case::new().arg("--system-parameter-default=lonely").fails("KEY=VALUE");
    Case::new()
        .arg("--system-parameter-default=statement_logging_max_sample_rate=2")
        .fails("no valid value");
    Case::new()
        .arg("--system-parameter-default=statement_logging_target_data_rate=1e6")
        .fails("no valid value");
    Case::new().arg("--aws-account-id=1").fails("only for aws");
    Case::new()
        .without("--persist-pubsub-url")
        .arg("--persist-pubsub-url=mz:6879")
        .fails("http://");
}

#[test]
fn clusterd_must_be_of_the_same_version() {
    Case::new()
        .set("STANDIN_VERSION", "v26.43.1")
        .fails("not clusterd of this version");
}

#[test]
fn sizes_are_checked_and_bound_to_the_flags_that_name_them() {
    Case::new()
        .without("--cluster-replica-sizes")
        .arg("--cluster-replica-sizes=[]")
        .fails("JSON object of sizes");
    Case::new()
        .without("--bootstrap-default-cluster-replica-size")
        .arg("--bootstrap-default-cluster-replica-size=50cc")
        .fails("50cc");
    Case::new()
        .arg("--system-parameter-default=allowed_cluster_replica_sizes=25cc")
        .fails("single-quoted");
    let mut case = Case::new();
    for arg in &mut case.args {
        *arg = arg.replace(r#""workers":1"#, r#""workers":1,"worker":1"#);
    }
    case.fails("unknown field `worker`");
}

#[test]
fn flags_begin_and_end_with_versions() {
    let legacy = |tag: &str| {
        let case = Case::new().version(tag).without("--listeners-config-path");
        let case = case
            .arg("--sql-listen-addr=0.0.0.0:6875")
            .arg("--http-listen-addr=0.0.0.0:6876");
        case.arg("--internal-sql-listen-addr=0.0.0.0:6877")
            .arg("--internal-http-listen-addr=0.0.0.0:6878")
    };
    let listeners = legacy("v0.146.9").load().unwrap().listeners;
    assert_eq!(listeners.http[1].addr, "0.0.0.0:6878");
    legacy("v0.147.0-dev.0").fails("--sql-listen-addr: it ended with");
    Case::new()
        .version("v0.146.9")
        .fails("--listeners-config-path: it begins with");
    for (flag, last_without, first_with) in [
        ("--orchestrator-kubernetes-service-affinity={}", "v0.143.9", "v0.144.0"),
        (
            "--orchestrator-kubernetes-service-tolerations=[]",
            "v0.143.9",
            "v0.144.0",
        ),
    ] {
        legacy(last_without).arg(flag).fails("it begins with");
        assert!(legacy(first_with).arg(flag).load().is_ok(), "{flag}");
    }
    // For versions with a file, the schema is not what this test is about.
    for (flag, last_without, first_with) in [
        (
            "--orchestrator-kubernetes-service-annotation=a=b",
            "v0.153.9",
            "v0.154.0",
        ),
        ("--config-sync-loop-interval=1s", "v26.0.9", "v26.1.0-dev.0"),
        (
            "--orchestrator-kubernetes-priority-class-name=high",
            "v26.41.9",
            "v26.42.0-dev.0",
        ),
    ] {
        let with = |tag: &str| {
            let case = Case::new().version(tag).arg(flag);
            let case = if flag.contains("sync") {
                case.arg("--config-sync-file-path=/f")
            } else {
                case
            };
            case.load().map(drop).map_err(|error| format!("{error:#}"))
        };
        assert!(with(last_without).unwrap_err().contains("it begins with"), "{flag}");
        assert!(
            with(first_with)
                .err()
                .is_none_or(|reason| !reason.contains("it begins with")),
            "{flag}"
        );
    }
    for (tag, accepted) in [
        ("v0.142.9", false),
        ("v0.143.0", true),
        ("v0.152.9", true),
        ("v0.153.0", false),
    ] {
        let case = if tag < "v0.147" {
            legacy(tag)
        } else {
            Case::new().version(tag)
        };
        let result = case.arg("--disable-license-key-checks").load();
        let refused = result.is_err_and(|error| error.to_string().contains("--disable-license-key-checks"));
        assert_eq!(refused, !accepted, "{tag}");
    }
}

#[test]
fn files_and_variables_must_be_there() {
    Case::new()
        .set("MZ_METADATA_BACKEND_URL", "")
        .fails("MZ_METADATA_BACKEND_URL");
    Case::new().set("MZ_PERSIST_BLOB_URL", "").fails("MZ_PERSIST_BLOB_URL");
    Case::new().set("MZ_LICENSE_KEY", "").fails("needs a licence key");
    Case::new()
        .set("MZ_LICENSE_KEY", "/nowhere")
        .fails("cannot read the licence key");
    let case = Case::new();
    case.root.write("license_key/license_key", "");
    case.fails("holds no licence key");
    let case = Case::new();
    std::fs::remove_file(case.root.0.join("listeners/listeners.json")).unwrap();
    case.fails("cannot read /listeners/listeners.json");
    Case::new()
        .without("--listeners-config-path")
        .fails("--listeners-config-path is missing");
    let case = Case::new();
    case.root.write(
        "listeners/listeners.json",
        &LISTENERS.replace("KIND", "None").replacen("false", "true", 1),
    );
    case.fails("has TLS, but --tls-mode is disable");
}

#[test]
fn passwords_need_the_parameter_that_allows_them() {
    let case = Case::new();
    case.root
        .write("listeners/listeners.json", &LISTENERS.replace("KIND", "Password"));
    case.fails("enable_password_auth=true is missing");
    let config = case
        .arg("--system-parameter-default=enable_password_auth=true")
        .set("MZ_EXTERNAL_LOGIN_PASSWORD_MZ_SYSTEM", "secret")
        .load()
        .unwrap();
    assert_eq!(config.system_password.as_deref(), Some("secret"));
}
