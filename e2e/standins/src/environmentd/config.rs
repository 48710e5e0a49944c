//! Everything environmentd was told, checked as a whole: flags against its version, files, licence, listeners.

use std::path::Path;

use anyhow::{Context as _, bail};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use super::args::{Args, SecretsController};
use super::listeners::Listeners;
use super::sizes;
use crate::host::{Host, split_address};
use crate::settings::{self, tls_files};
use crate::version::{Bound, Version};

/// The first version that reads its ports from a file.
const LISTENERS_FILE: Bound = Bound::dev(0, 147, 0);
/// The first version that always checks its licence.
const LICENSE_ALWAYS: Bound = Bound::release(0, 153, 0);
/// The first version that knows the switch to not check it.
const LICENSE_SWITCH: Bound = Bound::release(0, 143, 0);

/// Flags that not every version has: name, first version with it, first version without it.
const GATES: &[(&str, Option<Bound>, Option<Bound>)] = &[
    (
        "orchestrator_kubernetes_service_affinity",
        Some(Bound::release(0, 144, 0)),
        None,
    ),
    (
        "orchestrator_kubernetes_service_tolerations",
        Some(Bound::release(0, 144, 0)),
        None,
    ),
    (
        "orchestrator_kubernetes_service_annotation",
        Some(Bound::release(0, 154, 0)),
        None,
    ),
    (
        "orchestrator_kubernetes_priority_class_name",
        Some(Bound::dev(26, 42, 0)),
        None,
    ),
    ("config_sync_file_path", Some(Bound::dev(26, 1, 0)), None),
    ("config_sync_loop_interval", Some(Bound::dev(26, 1, 0)), None),
    ("disable_license_key_checks", Some(LICENSE_SWITCH), Some(LICENSE_ALWAYS)),
    ("listeners_config_path", Some(LISTENERS_FILE), None),
    ("sql_listen_addr", None, Some(LISTENERS_FILE)),
    ("http_listen_addr", None, Some(LISTENERS_FILE)),
    ("internal_sql_listen_addr", None, Some(LISTENERS_FILE)),
    ("internal_http_listen_addr", None, Some(LISTENERS_FILE)),
];

/// What environmentd runs with.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) args: Args,
    pub(crate) version: Version,
    pub(crate) listeners: Listeners,
    /// The password of `mz_system`, where one is set.
    pub(crate) system_password: Option<String>,
}

// === impl Config ===

impl Config {
    /// Reads and checks everything; the error says what is wrong with what.
    pub(crate) fn load(arguments: &[String], host: &Host) -> anyhow::Result<Self> {
        let version = host.version()?;
        let matches = settings::parse(Args::command(), arguments)?;
        check_gates(&matches, &version)?;
        let args = Args::from_arg_matches(&matches)?;
        check_together(&args, &version)?;
        sizes::check(&args)?;
        for variable in ["MZ_METADATA_BACKEND_URL", "MZ_PERSIST_BLOB_URL"] {
            if host.variable(variable).is_none() {
                bail!("the variable {variable} is not set");
            }
        }
        check_licence(&args, &version, host)?;
        if let Some((certificate, key)) = tls_files(args.tls_mode, args.tls_cert.as_deref(), args.tls_key.as_deref())? {
            crate::net::acceptor(&host.file(certificate), &host.file(key))?;
        }
        let listeners = load_listeners(&args, &version, host)?;
        let system_password = host.variable("MZ_EXTERNAL_LOGIN_PASSWORD_MZ_SYSTEM").map(str::to_owned);
        let config = Self {
            args,
            version,
            listeners,
            system_password,
        };
        config.check_listeners()?;
        Ok(config)
    }

    /// The value of a system parameter that was given on the command line; the last one wins.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.args
            .system_parameter_default
            .iter()
            .rev()
            .find(|pair| pair.key == name)
            .map(|pair| pair.value.as_str())
    }

    fn check_listeners(&self) -> anyhow::Result<()> {
        let sql = self
            .listeners
            .sql
            .iter()
            .map(|sql| (&sql.name, sql.tls, sql.authenticator));
        for (name, tls, kind) in sql.chain(
            self.listeners
                .http
                .iter()
                .map(|http| (&http.name, http.tls, http.authenticator)),
        ) {
            if tls && self.args.tls_cert.is_none() {
                bail!("listeners file: {name} has TLS, but --tls-mode is disable");
            }
            if kind.has_passwords() && self.parameter("enable_password_auth") != Some("true") {
                bail!(
                    "listeners file: {name} has {kind:?}, but --system-parameter-default=enable_password_auth=true is missing"
                );
            }
        }
        Ok(())
    }
}

fn check_gates(matches: &ArgMatches, version: &Version) -> anyhow::Result<()> {
    for (id, from, until) in GATES {
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let flag = id.replace('_', "-");
        if let Some(from) = from.filter(|from| !version.at_least(*from)) {
            bail!("unexpected argument --{flag}: it begins with {from}, this is {version}");
        }
        if let Some(until) = until.filter(|until| version.at_least(*until)) {
            bail!("unexpected argument --{flag}: it ended with {until}, this is {version}");
        }
    }
    Ok(())
}

fn check_together(args: &Args, version: &Version) -> anyhow::Result<()> {
    if !args.clusterd_image.ends_with(&format!("/clusterd:{version}")) {
        bail!(
            "--clusterd-image={} is not clusterd of this version, {version}",
            args.clusterd_image
        );
    }
    let aws = args.environment_id.provider == "aws";
    let aws_only = [
        ("--availability-zone", !args.availability_zone.is_empty()),
        ("--aws-connection-role-arn", args.aws_connection_role_arn.is_some()),
        ("--aws-account-id", args.aws_account_id.is_some()),
        (
            "--aws-secrets-controller-tags",
            !args.aws_secrets_controller_tags.is_empty(),
        ),
        (
            "--secrets-controller=aws-secrets-manager",
            args.secrets_controller == SecretsController::AwsSecretsManager,
        ),
    ];
    if let Some((flag, _)) = aws_only.iter().find(|(_, given)| *given && !aws) {
        bail!("{flag} is only for aws, this is {}", args.environment_id.text);
    }
    if !args.orchestrator_kubernetes_name_prefix.ends_with('-') {
        bail!("--orchestrator-kubernetes-name-prefix must end in a hyphen");
    }
    split_address(&args.internal_persist_pubsub_listen_addr).context("--internal-persist-pubsub-listen-addr")?;
    let pubsub = args
        .persist_pubsub_url
        .strip_prefix("http://")
        .context("--persist-pubsub-url must begin with http://")?;
    split_address(pubsub).context("--persist-pubsub-url")?;
    for pair in &args.system_parameter_default {
        let valid = match pair.key.as_str() {
            "statement_logging_max_sample_rate" => {
                pair.value.parse::<f64>().is_ok_and(|rate| (0.0..=1.0).contains(&rate))
            }
            "statement_logging_target_data_rate" => pair.value.parse::<u64>().is_ok_and(|rate| rate > 0),
            "enable_rbac_checks"
            | "enable_password_auth"
            | "enable_internal_statement_logging"
            | "cluster_enable_topology_spread" => pair.value.parse::<bool>().is_ok(),
            _ => true,
        };
        if !valid {
            bail!(
                "--system-parameter-default={}={} has no valid value",
                pair.key,
                pair.value
            );
        }
    }
    Ok(())
}

fn check_licence(args: &Args, version: &Version, host: &Host) -> anyhow::Result<()> {
    let Some(path) = host.variable("MZ_LICENSE_KEY") else {
        let needed =
            version.at_least(LICENSE_ALWAYS) || (version.at_least(LICENSE_SWITCH) && !args.disable_license_key_checks);
        if needed {
            bail!("{version} needs a licence key: the variable MZ_LICENSE_KEY is not set");
        }
        return Ok(());
    };
    let key = std::fs::read_to_string(host.file(Path::new(path)))
        .with_context(|| format!("cannot read the licence key {path}"))?;
    if key.trim().split('.').count() != 3 {
        bail!("{path} holds no licence key: it is not three parts with dots between them");
    }
    Ok(())
}

fn load_listeners(args: &Args, version: &Version, host: &Host) -> anyhow::Result<Listeners> {
    if version.at_least(LISTENERS_FILE) {
        let path = args
            .listeners_config_path
            .as_deref()
            .context("the argument --listeners-config-path is missing")?;
        let text =
            std::fs::read_to_string(host.file(path)).with_context(|| format!("cannot read {}", path.display()))?;
        return Listeners::parse(&text, version).with_context(|| path.display().to_string());
    }
    let address = |flag: &str, value: &Option<String>| {
        let value = value
            .clone()
            .with_context(|| format!("the argument {flag} is missing"))?;
        split_address(&value).context(flag.to_owned())?;
        anyhow::Ok(value)
    };
    Ok(Listeners::from_flags(
        &address("--sql-listen-addr", &args.sql_listen_addr)?,
        &address("--http-listen-addr", &args.http_listen_addr)?,
        &address("--internal-sql-listen-addr", &args.internal_sql_listen_addr)?,
        &address("--internal-http-listen-addr", &args.internal_http_listen_addr)?,
        args.tls_cert.is_some(),
    ))
}

#[cfg(test)]
mod tests;
