//! Area `node_upgrades`: the watcher of GKE node upgrades, beside stand-ins for Google's services.

use super::Scenario;

/// The scenarios of this area.
pub(super) const SCENARIOS: &[Scenario] = &[];
