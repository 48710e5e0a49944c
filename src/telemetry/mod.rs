//! Logs, traces, metrics and the HTTP servers that show them.
//!
//! What belongs here: everything by which people and monitoring look at this process. What does not: deciding
//! anything. Other folders report through [`Board`] and [`Metrics`]; nobody else knows a registry.

pub mod board;
pub mod logging;
pub mod metrics;
mod page;
mod panics;
pub mod server;
mod traces;

pub use board::{Board, Readiness};
pub use logging::Guard;
pub use metrics::Metrics;

/// Why telemetry can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log can't be set up, because somebody else did it before.
    #[error("can't set up the log")]
    Logging(#[from] tracing_subscriber::util::TryInitError),
    /// The exporter of traces can't be built.
    #[error("can't export traces to {endpoint}")]
    Traces {
        /// `--opentelemetry-endpoint`.
        endpoint: String,
        /// Why.
        #[source]
        source: opentelemetry_otlp::ExporterBuildError,
    },
    /// A header can't be sent by gRPC.
    #[error("--opentelemetry-header: {0:?} can't be sent by gRPC")]
    Header(String),
    /// A metric can't be registered: a fault of this program.
    #[error("can't register a metric")]
    Registration(#[from] prometheus::Error),
    /// OpenTelemetry's exporter for Prometheus can't be built: a fault of this program.
    #[error("can't build the exporter of metrics")]
    Exporter(#[from] opentelemetry_sdk::error::OTelSdkError),
    /// An address can't be listened on.
    #[error("can't listen on {address} ({flag}){}", advice(source))]
    Listen {
        /// The flag that says the address.
        flag: &'static str,
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => ": the port is in use; stop what listens there, or give another address",
        std::io::ErrorKind::PermissionDenied => ": ports below 1024 need a privilege; give another port",
        _ => "",
    }
}
