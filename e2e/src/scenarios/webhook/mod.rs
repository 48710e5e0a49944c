//! Area `webhook`: the conversion webhook, its certificates and the registration of the custom resources.

use super::Scenario;

/// The scenarios of this area.
pub(super) const SCENARIOS: &[Scenario] = &[];
