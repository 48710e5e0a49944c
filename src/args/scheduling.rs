//! Flags about where managed pods run and what they may use.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, ResourceRequirements, Toleration};

use super::{KeyValue, parse};

/// Scheduling and resources of managed pods, as flags.
#[derive(Clone, Debug, clap::Args)]
pub struct SchedulingArgs {
    /// `schedulerName` of managed pods.
    #[arg(long, value_name = "NAME")]
    pub scheduler_name: Option<String>,

    /// `StorageClass` of clusterd's scratch volumes.
    #[arg(long, value_name = "NAME")]
    pub ephemeral_volume_class: Option<String>,

    /// A node label that environmentd pods require; repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub environmentd_node_selector: Vec<KeyValue>,
    /// Affinity of environmentd pods (core/v1 Affinity).
    #[arg(long, value_name = "JSON", value_parser = parse::json::<Affinity>)]
    pub environmentd_affinity: Option<Affinity>,
    /// A toleration of environmentd pods (core/v1 Toleration); repeatable.
    #[arg(long, value_name = "JSON", value_parser = parse::json::<Toleration>)]
    pub environmentd_toleration: Vec<Toleration>,
    /// Resources of environmentd where the Materialize sets none (core/v1 `ResourceRequirements`).
    #[arg(long, value_name = "JSON", value_parser = parse::json::<ResourceRequirements>)]
    pub environmentd_default_resources: Option<ResourceRequirements>,
    /// Priority class of environmentd pods.
    #[arg(long, value_name = "NAME")]
    pub environmentd_priority_class_name: Option<String>,

    /// A node label that clusterd pods require; repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub clusterd_node_selector: Vec<KeyValue>,
    /// Affinity of clusterd pods (core/v1 Affinity).
    #[arg(long, value_name = "JSON", value_parser = parse::json::<Affinity>)]
    pub clusterd_affinity: Option<Affinity>,
    /// A toleration of clusterd pods (core/v1 Toleration); repeatable.
    #[arg(long, value_name = "JSON", value_parser = parse::json::<Toleration>)]
    pub clusterd_toleration: Vec<Toleration>,
    /// Priority class of clusterd pods (environmentd v26.42 and newer).
    #[arg(long, value_name = "NAME")]
    pub clusterd_priority_class_name: Option<String>,

    /// A node label that balancerd pods require; repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub balancerd_node_selector: Vec<KeyValue>,
    /// Affinity of balancerd pods (core/v1 Affinity).
    #[arg(long, value_name = "JSON", value_parser = parse::json::<Affinity>)]
    pub balancerd_affinity: Option<Affinity>,
    /// A toleration of balancerd pods (core/v1 Toleration); repeatable.
    #[arg(long, value_name = "JSON", value_parser = parse::json::<Toleration>)]
    pub balancerd_toleration: Vec<Toleration>,
    /// Resources of balancerd where the Balancer sets none (core/v1 `ResourceRequirements`).
    #[arg(long, value_name = "JSON", value_parser = parse::json::<ResourceRequirements>)]
    pub balancerd_default_resources: Option<ResourceRequirements>,

    /// A node label that console pods require; repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub console_node_selector: Vec<KeyValue>,
    /// Affinity of console pods (core/v1 Affinity).
    #[arg(long, value_name = "JSON", value_parser = parse::json::<Affinity>)]
    pub console_affinity: Option<Affinity>,
    /// A toleration of console pods (core/v1 Toleration); repeatable.
    #[arg(long, value_name = "JSON", value_parser = parse::json::<Toleration>)]
    pub console_toleration: Vec<Toleration>,
    /// Resources of the console where the Console sets none (core/v1 `ResourceRequirements`).
    #[arg(long, value_name = "JSON", value_parser = parse::json::<ResourceRequirements>)]
    pub console_default_resources: Option<ResourceRequirements>,
}

/// Scheduling and resources of managed pods.
#[derive(Clone, Debug, Default)]
pub struct Scheduling {
    /// `schedulerName` of managed pods.
    pub scheduler_name: Option<String>,
    /// `StorageClass` of clusterd's scratch volumes.
    pub ephemeral_volume_class: Option<String>,
    /// environmentd's pods.
    pub environmentd: Placement,
    /// clusterd's pods, which environmentd creates; never with default resources, since sizes decide.
    pub clusterd: Placement,
    /// balancerd's pods; never with a priority class.
    pub balancerd: Placement,
    /// The console's pods; never with a priority class.
    pub console: Placement,
}

/// Where the pods of one component run and what they may use.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// Node labels that the pods require.
    pub node_selector: BTreeMap<String, String>,
    /// Affinity, if any was given.
    pub affinity: Option<Affinity>,
    /// Tolerations, in the order given.
    pub tolerations: Vec<Toleration>,
    /// Resources where the custom resource sets none.
    pub default_resources: Option<ResourceRequirements>,
    /// Priority class, if any was given.
    pub priority_class_name: Option<String>,
}

// === impl Scheduling ===

impl From<SchedulingArgs> for Scheduling {
    fn from(args: SchedulingArgs) -> Self {
        Self {
            scheduler_name: args.scheduler_name,
            ephemeral_volume_class: args.ephemeral_volume_class,
            environmentd: Placement {
                node_selector: parse::to_map(args.environmentd_node_selector),
                affinity: args.environmentd_affinity,
                tolerations: args.environmentd_toleration,
                default_resources: args.environmentd_default_resources,
                priority_class_name: args.environmentd_priority_class_name,
            },
            clusterd: Placement {
                node_selector: parse::to_map(args.clusterd_node_selector),
                affinity: args.clusterd_affinity,
                tolerations: args.clusterd_toleration,
                default_resources: None,
                priority_class_name: args.clusterd_priority_class_name,
            },
            balancerd: Placement {
                node_selector: parse::to_map(args.balancerd_node_selector),
                affinity: args.balancerd_affinity,
                tolerations: args.balancerd_toleration,
                default_resources: args.balancerd_default_resources,
                priority_class_name: None,
            },
            console: Placement {
                node_selector: parse::to_map(args.console_node_selector),
                affinity: args.console_affinity,
                tolerations: args.console_toleration,
                default_resources: args.console_default_resources,
                priority_class_name: None,
            },
        }
    }
}
