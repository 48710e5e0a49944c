//! Flags of the network policies around managed pods.

use super::parse;

/// Network policies around managed pods (docs/reference/flags.md).
#[derive(Clone, Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct NetworkPolicies {
    /// Create the policies between the pods of an environment.
    #[arg(long)]
    pub network_policies_internal_enabled: bool,
    /// Create the policies for traffic from outside.
    #[arg(long)]
    pub network_policies_ingress_enabled: bool,
    /// An address range that may connect; repeatable.
    #[arg(long, value_name = "CIDR", value_parser = parse::cidr)]
    pub network_policies_ingress_cidrs: Vec<String>,
    /// Create the policies for traffic to the outside.
    #[arg(long)]
    pub network_policies_egress_enabled: bool,
    /// An address range that may be connected to; repeatable.
    #[arg(long, value_name = "CIDR", value_parser = parse::cidr)]
    pub network_policies_egress_cidrs: Vec<String>,
    /// Switch off environmentd's own network policies, the SQL objects of that name.
    #[arg(long)]
    pub disable_database_network_policies: bool,
}
