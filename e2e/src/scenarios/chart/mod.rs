//! Area `chart`: what the chart installs, upgrades and removes.

use super::Scenario;

/// The scenarios of this area.
pub(super) const SCENARIOS: &[Scenario] = &[];
