//! Flags of the GKE node-upgrade watcher.

use super::cloud::CloudProvider;

/// The GKE node-upgrade watcher, as flags.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct NodeUpgradesArgs {
    /// Roll environments before GKE replaces the nodes under them; needs --cloud-provider=gcp and
    /// --install-v1-crd.
    #[arg(long, requires_all = [
        "gcp_node_upgrade_notification_subscription",
        "gcp_cluster_name",
        "gcp_cluster_location",
    ])]
    pub enable_gcp_node_upgrade_rollout_trigger: bool,

    /// Pub/Sub subscription to the cluster's upgrade notifications:
    /// projects/{project}/subscriptions/{subscription}.
    #[arg(long, value_name = "SUBSCRIPTION")]
    pub gcp_node_upgrade_notification_subscription: Option<String>,

    /// Name of the GKE cluster.
    #[arg(long, value_name = "NAME")]
    pub gcp_cluster_name: Option<String>,

    /// Region or zone of the GKE cluster.
    #[arg(long, value_name = "LOCATION")]
    pub gcp_cluster_location: Option<String>,

    /// A node pool to watch; repeatable [default: all].
    #[arg(long, value_name = "POOL")]
    pub gcp_node_upgrade_watched_node_pool: Vec<String>,
}

/// The GKE node-upgrade watcher, where it is switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeUpgrades {
    /// Project of the subscription and of the cluster.
    pub project: String,
    /// Name of the subscription in its project.
    pub subscription: String,
    /// Name of the cluster.
    pub cluster_name: String,
    /// Region or zone of the cluster.
    pub cluster_location: String,
    /// Node pools to watch; empty means all.
    pub watched_node_pools: Vec<String>,
}

/// Why the watcher can't be configured.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeUpgradesError {
    /// The watcher speaks GKE's API.
    #[error("--enable-gcp-node-upgrade-rollout-trigger requires --cloud-provider=gcp, but it is {0}")]
    CloudProvider(CloudProvider),
    /// The watcher triggers rollouts at v1.
    #[error("--enable-gcp-node-upgrade-rollout-trigger requires --install-v1-crd: it requests rollouts at version v1")]
    V1NotInstalled,
    /// A setting is missing or empty.
    #[error("--enable-gcp-node-upgrade-rollout-trigger requires {0} with a value")]
    Missing(&'static str),
    /// The subscription's name has another form.
    #[error(
        "--gcp-node-upgrade-notification-subscription: expected projects/{{project}}/subscriptions/{{subscription}}, \
         found {0:?}"
    )]
    Subscription(String),
}

// === impl NodeUpgradesArgs ===

impl NodeUpgradesArgs {
    /// Checks the settings. While the watcher is switched off they are not looked at.
    pub(super) fn node_upgrades(
        self,
        provider: CloudProvider,
        v1_installed: bool,
    ) -> Result<Option<NodeUpgrades>, NodeUpgradesError> {
        if !self.enable_gcp_node_upgrade_rollout_trigger {
            return Ok(None);
        }
        if provider != CloudProvider::Gcp {
            return Err(NodeUpgradesError::CloudProvider(provider));
        }
        if !v1_installed {
            return Err(NodeUpgradesError::V1NotInstalled);
        }
        let given = |value: Option<String>, flag| {
            value
                .filter(|value| !value.is_empty())
                .ok_or(NodeUpgradesError::Missing(flag))
        };
        let name = given(
            self.gcp_node_upgrade_notification_subscription,
            "--gcp-node-upgrade-notification-subscription",
        )?;
        let cluster_name = given(self.gcp_cluster_name, "--gcp-cluster-name")?;
        let cluster_location = given(self.gcp_cluster_location, "--gcp-cluster-location")?;
        let (project, subscription) = match name.split('/').collect::<Vec<_>>()[..] {
            ["projects", project, "subscriptions", subscription] if !project.is_empty() && !subscription.is_empty() => {
                (project.to_owned(), subscription.to_owned())
            }
            _ => return Err(NodeUpgradesError::Subscription(name)),
        };
        Ok(Some(NodeUpgrades {
            project,
            subscription,
            cluster_name,
            cluster_location,
            watched_node_pools: self.gcp_node_upgrade_watched_node_pool,
        }))
    }
}
