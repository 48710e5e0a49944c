//! When a new generation takes over.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a new generation takes over from the active one (`spec.rolloutStrategy`).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
pub enum MaterializeRolloutStrategy {
    /// Start the new generation beside the active one, promote it once it has caught up.
    #[default]
    WaitUntilReady,
    /// As `WaitUntilReady`, but wait at `ReadyToPromote` until `forcePromote` names this rollout.
    ManuallyPromote,
    /// Delete the active generation first, then start and promote the new one: downtime, but no room for two needed.
    ImmediatelyPromoteCausingDowntime,
}
