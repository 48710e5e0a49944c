//! The command line: one struct per concern, flattened into one [`Args`].
//!
//! What belongs here: the flags with their names, types, defaults and environment variables, the rules that
//! judge one flag or several together, and [`Config`], the plain validated values that controllers get. What
//! does not: anything that acts on them. `docs/reference/flags.md` lists every flag for users.
//!
//! Where clap's flat flags are already the shape that readers want (ports, for example) one struct serves as
//! both; where they are not (the placement of each component's pods) the module has `…Args` and a plain type.

use clap::Parser;

pub mod certificates;
pub mod cloud;
pub mod config;
pub mod environmentd;
pub mod features;
pub mod identity;
pub mod images;
pub mod license;
pub mod network_policies;
pub mod node_upgrades;
mod parse;
pub mod ports;
pub mod process;
pub mod scheduling;
pub mod sizing;
pub mod telemetry;
pub mod webhook;

pub use certificates::CertificateDefaults;
pub use cloud::{Cloud, CloudProvider, SecretsController};
pub use config::{Config, Error};
pub use environmentd::Environmentd;
pub use features::Features;
pub use images::{ImagePullPolicy, Images};
pub use network_policies::NetworkPolicies;
pub use node_upgrades::NodeUpgrades;
pub use parse::{KeyValue, Sensitive};
pub use ports::Ports;
pub use process::Process;
pub use scheduling::{Placement, Scheduling};
pub use sizing::Sizing;
pub use telemetry::{Filter, LogFormat, Telemetry};
pub use webhook::Webhook;

/// The Kubernetes operator of self-managed Materialize.
///
/// Several replicas may run; the holder of the Lease `orchestratord` reconciles, all of them serve the
/// conversion webhook and their metrics.
#[derive(Debug, Parser)]
#[command(name = "orchestratord", version, args_override_self = true)]
pub struct Args {
    /// Process, listeners and leader election.
    #[command(flatten, next_help_heading = "Process")]
    pub process: Process,
    /// CRD versions and the conversion webhook.
    #[command(flatten, next_help_heading = "CRDs and conversion webhook")]
    pub webhook: webhook::WebhookArgs,
    /// Cloud provider.
    #[command(flatten, next_help_heading = "Cloud")]
    pub cloud: Cloud,
    /// Features that are switched on or off.
    #[command(flatten, next_help_heading = "Features")]
    pub features: Features,
    /// Image tags and pull policy.
    #[command(flatten, next_help_heading = "Images")]
    pub images: images::ImagesArgs,
    /// Values passed on to environmentd.
    #[command(flatten, next_help_heading = "environmentd")]
    pub environmentd: Environmentd,
    /// Scheduling and resources of managed pods.
    #[command(flatten, next_help_heading = "Scheduling and resources of managed pods")]
    pub scheduling: scheduling::SchedulingArgs,
    /// Ports of managed pods.
    #[command(flatten, next_help_heading = "Ports of managed pods")]
    pub ports: Ports,
    /// Network policies around managed pods.
    #[command(flatten, next_help_heading = "Network policies")]
    pub network_policies: NetworkPolicies,
    /// Cluster replica sizes.
    #[command(flatten, next_help_heading = "Cluster sizing")]
    pub sizing: Sizing,
    /// Default certificate settings.
    #[command(flatten, next_help_heading = "Certificates")]
    pub certificates: certificates::CertificatesArgs,
    /// Logs and traces.
    #[command(flatten, next_help_heading = "Logs and traces")]
    pub telemetry: Telemetry,
    /// GKE node upgrades.
    #[command(flatten, next_help_heading = "GKE node upgrades")]
    pub node_upgrades: node_upgrades::NodeUpgradesArgs,
}

#[cfg(test)]
mod tests;
