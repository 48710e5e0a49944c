//! Flags that switch something on or off, and the licence keys' public keys.

use std::path::PathBuf;

/// What is switched on (docs/reference/flags.md).
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Features {
    /// Create a Balancer for each Materialize.
    #[arg(long)]
    pub create_balancers: bool,

    /// Create a Console for each Materialize.
    #[arg(long)]
    pub create_console: bool,

    /// Let environmentd collect the resource usage of its pods from metrics-server.
    #[arg(long)]
    pub collect_pod_metrics: bool,

    /// Put prometheus.io annotations on managed pods.
    #[arg(long)]
    pub enable_prometheus_scrape_annotations: bool,

    /// Put hardened security contexts on managed pods.
    #[arg(long)]
    pub enable_security_context: bool,

    /// Accepted and without effect, as in Materialize's own operator.
    #[arg(long)]
    pub disable_authentication: bool,

    /// Do not demand a licence key of environmentd versions that can run without one.
    #[arg(long, hide = true)]
    pub disable_license_key_checks: bool,

    /// RSA public key (PEM) that signs licence keys; repeatable. Without one the signature is left to
    /// environmentd, everything else is checked.
    #[arg(long, value_name = "FILE")]
    pub license_key_public_key: Vec<PathBuf>,
}
