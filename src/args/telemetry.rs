//! Flags about logs and traces. Most are passed on to environmentd too, so each keeps what was given.

use std::{str::FromStr, time::Duration};

use tracing_subscriber::filter::Targets;

use super::{KeyValue, Sensitive, parse};

/// Logs and traces (docs/reference/flags.md).
#[derive(Clone, Debug, clap::Args)]
pub struct Telemetry {
    /// What is logged: comma-separated `[module=]level`. The module `mz_orchestratord` means this program.
    #[arg(
        long,
        value_name = "FILTER",
        env = "ORCHESTRATORD_STARTUP_LOG_FILTER",
        default_value = "info"
    )]
    pub startup_log_filter: Filter,

    /// Format of the log on standard error.
    #[arg(long, value_name = "FORMAT", env = "ORCHESTRATORD_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// Text before each line of the log, with the format text.
    #[arg(long, value_name = "TEXT", env = "ORCHESTRATORD_LOG_PREFIX")]
    pub log_prefix: Option<String>,

    /// URL of the OTLP (gRPC) collector that traces are sent to.
    #[arg(long, value_name = "URL", env = "ORCHESTRATORD_OPENTELEMETRY_ENDPOINT", value_parser = parse::http_url)]
    pub opentelemetry_endpoint: Option<String>,

    /// Headers sent to the collector, separated by commas; repeatable.
    #[arg(
        long,
        value_name = "NAME=VALUE",
        env = "ORCHESTRATORD_OPENTELEMETRY_HEADER",
        hide_env_values = true,
        requires = "opentelemetry_endpoint",
        value_delimiter = ',',
        value_parser = parse::header
    )]
    pub opentelemetry_header: Vec<(String, Sensitive)>,

    /// What is traced: comma-separated `[module=]level`.
    #[arg(
        long,
        value_name = "FILTER",
        env = "ORCHESTRATORD_STARTUP_OPENTELEMETRY_FILTER",
        requires = "opentelemetry_endpoint",
        default_value = "info"
    )]
    pub startup_opentelemetry_filter: Filter,

    /// Attributes of the traces' resource, separated by commas; repeatable.
    #[arg(
        long,
        value_name = "NAME=VALUE",
        env = "ORCHESTRATORD_OPENTELEMETRY_RESOURCE",
        value_delimiter = ','
    )]
    pub opentelemetry_resource: Vec<KeyValue>,

    /// Spans that wait for their export at most; more are dropped.
    #[arg(
        long,
        value_name = "NUMBER",
        env = "ORCHESTRATORD_OPENTELEMETRY_MAX_BATCH_QUEUE_SIZE",
        requires = "opentelemetry_endpoint",
        default_value_t = 2048
    )]
    pub opentelemetry_max_batch_queue_size: usize,

    /// Spans in one export at most.
    #[arg(
        long,
        value_name = "NUMBER",
        env = "ORCHESTRATORD_OPENTELEMETRY_MAX_EXPORT_BATCH_SIZE",
        requires = "opentelemetry_endpoint",
        default_value_t = 512
    )]
    pub opentelemetry_max_export_batch_size: usize,

    /// Exports at the same time at most. Accepted; this operator always exports one after the other.
    #[arg(
        long,
        value_name = "NUMBER",
        env = "ORCHESTRATORD_OPENTELEMETRY_MAX_CONCURRENT_EXPORTS",
        requires = "opentelemetry_endpoint",
        default_value_t = 1
    )]
    pub opentelemetry_max_concurrent_exports: usize,

    /// Pause between two exports.
    #[arg(
        long,
        value_name = "DURATION",
        env = "ORCHESTRATORD_OPENTELEMETRY_SCHED_DELAY",
        requires = "opentelemetry_endpoint",
        default_value = "5000ms",
        value_parser = humantime::parse_duration
    )]
    pub opentelemetry_sched_delay: Duration,

    /// How long one export may take.
    #[arg(
        long,
        value_name = "DURATION",
        env = "ORCHESTRATORD_OPENTELEMETRY_MAX_EXPORT_TIMEOUT",
        requires = "opentelemetry_endpoint",
        default_value = "30s",
        value_parser = humantime::parse_duration
    )]
    pub opentelemetry_max_export_timeout: Duration,

    /// DSN of the Sentry project that environmentd reports errors to.
    #[arg(long, value_name = "DSN", env = "ORCHESTRATORD_SENTRY_DSN", hide_env_values = true)]
    pub sentry_dsn: Option<Sensitive>,

    /// Sentry's environment; ignored without a DSN.
    #[arg(long, value_name = "NAME", env = "ORCHESTRATORD_SENTRY_ENVIRONMENT")]
    pub sentry_environment: Option<String>,

    /// Tags of errors in Sentry, separated by commas; repeatable.
    #[arg(
        long,
        value_name = "NAME=VALUE",
        env = "ORCHESTRATORD_SENTRY_TAG",
        value_delimiter = ','
    )]
    pub sentry_tag: Vec<KeyValue>,
}

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// A filter of log lines or spans: comma-separated `[module=]level`.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    text: String,
    targets: Targets,
}

/// The name under which charts and documents know this program's own module.
const MODULE_ALIAS: &str = "mz_orchestratord";
/// The crates that this name stands for.
const OWN_MODULES: [&str; 2] = ["orchestratord", "states"];

// === impl Filter ===

impl Filter {
    /// The filter as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The filter for `tracing`, with `mz_orchestratord` replaced by this program's own modules.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected =
            "expected comma-separated [module=]level with one of the levels trace, debug, info, warn, error, off";
        let mut directives = Vec::new();
        for directive in text
            .trim()
            .split(',')
            .map(str::trim)
            .filter(|directive| !directive.is_empty())
        {
            let (module, level) = match directive.split_once('=') {
                Some((module, level)) => (Some(module.trim()), level.trim()),
                None => (None, directive),
            };
            if !["trace", "debug", "info", "warn", "error", "off"]
                .iter()
                .any(|name| level.eq_ignore_ascii_case(name))
            {
                return Err(format!("{expected}, found {directive:?}"));
            }
            match module.and_then(|module| Some((module.strip_prefix(MODULE_ALIAS)?, module))) {
                Some(("", _)) => directives.extend(OWN_MODULES.map(|own| format!("{own}={level}"))),
                Some((rest, _)) if rest.starts_with("::") => {
                    directives.push(format!("{}{rest}={level}", OWN_MODULES[0]));
                }
                _ => directives.push(directive.to_owned()),
            }
        }
        let targets = directives
            .join(",")
            .parse()
            .map_err(|error| format!("{expected}: {error}"))?;
        Ok(Self {
            text: text.to_owned(),
            targets,
        })
    }
}
