//! Area `materialize`: rollouts of a Materialize, with crashes and edits at the worst moment.

use super::Scenario;

/// The scenarios of this area.
pub(super) const SCENARIOS: &[Scenario] = &[];
