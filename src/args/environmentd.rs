//! Flags whose values are passed on to environmentd.

use super::{Sensitive, parse};

/// Values passed on to environmentd (docs/reference/flags.md).
#[derive(Clone, Debug, clap::Args)]
pub struct Environmentd {
    /// Version of the Helm chart, which environmentd reports as metadata.
    #[arg(long, value_name = "VERSION")]
    pub helm_chart_version: Option<String>,

    /// Key of the telemetry service.
    #[arg(long, value_name = "KEY")]
    pub segment_api_key: Option<Sensitive>,

    /// Allow telemetry from the browser.
    #[arg(long)]
    pub segment_client_side: bool,

    /// Log the statements of internal users.
    #[arg(long)]
    pub enable_internal_statement_logging: bool,

    /// Default of environmentd's `statement_logging_max_sample_rate`, from 0 (off) to 1.
    #[arg(long, value_name = "FRACTION", value_parser = parse::fraction)]
    pub statement_logging_max_sample_rate: Option<f64>,

    /// Default of environmentd's `statement_logging_target_data_rate`, in bytes a second, more than 0.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub statement_logging_target_data_rate: Option<u64>,

    /// URL that environmentd proxies the console from.
    #[arg(long, value_name = "URL", default_value = "https://console.materialize.com")]
    pub internal_console_proxy_url: String,

    /// An origin that environmentd's CORS answers allow; repeatable. Giving one replaces the default list.
    #[arg(long, value_name = "ORIGIN", value_parser = parse::header_value, default_values = [
        "http://local.dev.materialize.com:3000",
        "http://local.mtrlz.com:3000",
        "http://localhost:3000",
        "https://staging.console.materialize.com",
    ])]
    pub environmentd_allowed_origins: Vec<String>,
}
