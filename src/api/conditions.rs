//! Types and reasons of the conditions in the status of the custom resources.
//! See `docs/reference/materialize-resource.md`.

/// Condition of a `Materialize`: whether the spec runs. Always the first one of the list.
pub const UP_TO_DATE: &str = "UpToDate";

/// Condition that is present, with status `True`, only while something keeps the resource from moving (decision R5).
pub const STALLED: &str = "Stalled";

/// Condition of a `Balancer` or `Console`: whether its Deployment is available.
pub const READY: &str = "Ready";

/// Reason of [`READY`].
pub const DEPLOYMENT_STATUS: &str = "DeploymentStatus";

/// Reasons of the condition [`UP_TO_DATE`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum UpToDateReason {
    /// A new generation was started and is not ready yet. Status `Unknown`.
    Applying,
    /// The new generation has caught up and waits for its promotion. Status `Unknown`.
    ReadyToPromote,
    /// The point of no return: the new generation is being made the leader. Status `Unknown`.
    Promoting,
    /// The spec runs. Status `True`.
    Applied,
    /// The spec differs from what runs, and no rollout was requested. Status `False`.
    WaitingForApproval,
    /// The rollout can't go on as things stand; it is tried again. Status `False`.
    FailedDeploy,
    /// The rollout was given up after `rolloutRequestTimeout`. Status `False`.
    RolloutTimeout,
}

// === impl UpToDateReason ===

impl UpToDateReason {
    /// All reasons.
    pub const ALL: [Self; 7] = [
        Self::Applying,
        Self::ReadyToPromote,
        Self::Promoting,
        Self::Applied,
        Self::WaitingForApproval,
        Self::FailedDeploy,
        Self::RolloutTimeout,
    ];

    /// The reason as it stands in the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Applying => "Applying",
            Self::ReadyToPromote => "ReadyToPromote",
            Self::Promoting => "Promoting",
            Self::Applied => "Applied",
            Self::WaitingForApproval => "WaitingForApproval",
            Self::FailedDeploy => "FailedDeploy",
            Self::RolloutTimeout => "RolloutTimeout",
        }
    }

    /// The condition's status that goes with this reason: `True`, `False` or `Unknown`.
    pub fn status(self) -> &'static str {
        match self {
            Self::Applied => "True",
            Self::Applying | Self::ReadyToPromote | Self::Promoting => "Unknown",
            Self::WaitingForApproval | Self::FailedDeploy | Self::RolloutTimeout => "False",
        }
    }

    /// The reason with this name, if there is one.
    pub fn parse(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == reason)
    }
}
