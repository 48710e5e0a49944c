//! Flags of the ports that managed pods listen on.

/// Ports of managed pods (docs/reference/flags.md).
#[derive(Clone, Debug, clap::Args)]
pub struct Ports {
    /// environmentd: SQL.
    #[arg(long, value_name = "PORT", default_value_t = 6875)]
    pub environmentd_sql_port: u16,
    /// environmentd: HTTP.
    #[arg(long, value_name = "PORT", default_value_t = 6876)]
    pub environmentd_http_port: u16,
    /// environmentd: SQL of internal users.
    #[arg(long, value_name = "PORT", default_value_t = 6877)]
    pub environmentd_internal_sql_port: u16,
    /// environmentd: HTTP of internal users; the leader API is there.
    #[arg(long, value_name = "PORT", default_value_t = 6878)]
    pub environmentd_internal_http_port: u16,
    /// environmentd: persist's `PubSub`.
    #[arg(long, value_name = "PORT", default_value_t = 6879)]
    pub environmentd_internal_persist_pubsub_port: u16,
    /// balancerd: SQL.
    #[arg(long, value_name = "PORT", default_value_t = 6875)]
    pub balancerd_sql_port: u16,
    /// balancerd: HTTP.
    #[arg(long, value_name = "PORT", default_value_t = 6876)]
    pub balancerd_http_port: u16,
    /// balancerd: health and metrics.
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub balancerd_internal_http_port: u16,
    /// console: HTTP.
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub console_http_port: u16,
}
