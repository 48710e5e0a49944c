//! Area `workloads`: balancers, consoles and certificates on real nodes.

use super::Scenario;

/// The scenarios of this area.
pub(super) const SCENARIOS: &[Scenario] = &[];
