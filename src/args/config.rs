//! The plain validated values that the rest of the program reads.

use std::{collections::BTreeMap, net::SocketAddr};

use jsonwebtoken::DecodingKey;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceColumnDefinition;

use super::{
    Args, CertificateDefaults, Cloud, Environmentd, Features, Images, NetworkPolicies, NodeUpgrades, Ports, Scheduling,
    Sizing, Telemetry, Webhook, identity, license, node_upgrades, parse,
};

/// Everything the command line says, checked. Shared as an `Arc`.
#[derive(Clone, Debug)]
pub struct Config {
    /// Identity of this replica: in the Lease, and as `reportingInstance` of events.
    pub identity: String,
    /// Whether the identity was given, by flag or variable, not found.
    pub identity_is_given: bool,
    /// The host name, which usually is the pod's name; none if the environment does not say.
    pub hostname: Option<String>,
    /// Namespace of the operator: home of the Lease, and the one that generated network policies admit.
    pub operator_namespace: String,
    /// Labels of the operator's own pods.
    pub operator_pod_labels: BTreeMap<String, String>,
    /// Address of `/metrics`, `/healthz` and `/readyz`.
    pub metrics_listen_address: SocketAddr,
    /// Address of the status page.
    pub profiling_listen_address: SocketAddr,
    /// Additional printer columns of the Materialize CRD.
    pub additional_crd_columns: Vec<CustomResourceColumnDefinition>,
    /// The conversion webhook; none without `--install-v1-crd`.
    pub webhook: Option<Webhook>,
    /// Cloud provider.
    pub cloud: Cloud,
    /// What is switched on.
    pub features: Features,
    /// Public keys that sign licence keys; empty: signatures are left to environmentd (decision R13).
    pub license_keys: Vec<DecodingKey>,
    /// Image tags and pull policy.
    pub images: Images,
    /// Values passed on to environmentd.
    pub environmentd: Environmentd,
    /// Scheduling and resources of managed pods.
    pub scheduling: Scheduling,
    /// Ports of managed pods.
    pub ports: Ports,
    /// Network policies around managed pods.
    pub network_policies: NetworkPolicies,
    /// Cluster replica sizes.
    pub sizing: Sizing,
    /// Default certificate settings.
    pub certificates: CertificateDefaults,
    /// Logs and traces, as they are passed on to environmentd.
    pub telemetry: Telemetry,
    /// The GKE node-upgrade watcher; none while it is switched off.
    pub node_upgrades: Option<NodeUpgrades>,
}

/// Why arguments that parse can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No usable identity for the election.
    #[error(transparent)]
    Identity(#[from] identity::IdentityError),
    /// A public key for licence keys can't be used.
    #[error(transparent)]
    LicenseKey(#[from] license::LicenseKeyError),
    /// The GKE watcher can't be configured.
    #[error(transparent)]
    NodeUpgrades(#[from] node_upgrades::NodeUpgradesError),
}

// === impl Config ===

impl Config {
    /// Checks what concerns several flags, resolves the identity, and reads the files that flags name.
    ///
    /// `hostname` is the value of `$HOSTNAME`. The operator's namespace is empty until
    /// [`Config::in_namespace`].
    ///
    /// # Errors
    /// See [`Error`].
    pub fn new(args: Args, hostname: Option<&str>) -> Result<Self, Error> {
        let webhook = args.webhook.webhook();
        Ok(Self {
            identity: identity::resolve(args.process.leader_election_identity.as_deref(), hostname)?,
            identity_is_given: args.process.leader_election_identity.is_some(),
            hostname: hostname.map(str::to_owned),
            operator_namespace: String::new(),
            operator_pod_labels: parse::to_map(args.process.orchestratord_pod_selector_labels),
            metrics_listen_address: args.process.metrics_listen_address,
            profiling_listen_address: args.process.profiling_listen_address,
            additional_crd_columns: args.webhook.additional_crd_columns.0,
            node_upgrades: args
                .node_upgrades
                .node_upgrades(args.cloud.cloud_provider, webhook.is_some())?,
            webhook,
            cloud: args.cloud,
            license_keys: license::read(&args.features.license_key_public_key)?,
            features: args.features,
            images: args.images.into(),
            environmentd: args.environmentd,
            scheduling: args.scheduling.into(),
            ports: args.ports,
            network_policies: args.network_policies,
            sizing: args.sizing,
            certificates: args.certificates.default_certificate_specs,
            telemetry: args.telemetry,
        })
    }

    /// The same with the operator's namespace, which the Kubernetes configuration says.
    #[must_use]
    pub fn in_namespace(self, operator_namespace: &str) -> Self {
        Self {
            operator_namespace: operator_namespace.to_owned(),
            ..self
        }
    }

    /// For tests: the three required flags, the given ones, namespace `materialize`.
    #[cfg(test)]
    pub(crate) fn for_tests(flags: &[&str]) -> Self {
        use clap::Parser as _;

        let required = [
            "orchestratord",
            "--cloud-provider=local",
            "--region=local",
            "--console-image-tag-default=v1",
        ];
        let args = Args::try_parse_from(required.iter().chain(flags)).unwrap();
        Self::new(args, Some("test-0")).unwrap().in_namespace("materialize")
    }
}
