//! How long a rollout may take before it is given up.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `spec.rolloutRequestTimeout`: a humantime duration such as `24h`, `90m` or `1h 30m`; `24h` unless set.
///
/// Kept as the text that the user wrote: the rollout hash is computed over it, and an unreadable one must survive.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(transparent)]
#[schemars(inline)]
pub struct RolloutRequestTimeout(pub String);

/// The time-out where none is given, or what is given can't be read: 24 hours.
pub const DEFAULT_ROLLOUT_REQUEST_TIMEOUT: Duration = Duration::from_hours(24);

// === impl RolloutRequestTimeout ===

impl RolloutRequestTimeout {
    /// The time-out as a duration. Zero is legal and means "at once".
    ///
    /// # Errors
    /// The text is no duration; callers warn, naming the resource, and use [`DEFAULT_ROLLOUT_REQUEST_TIMEOUT`].
    pub fn duration(&self) -> Result<Duration, humantime::DurationError> {
        humantime::parse_duration(&self.0)
    }
}

impl Default for RolloutRequestTimeout {
    fn default() -> Self {
        Self("24h".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_the_reference_are_read() {
        for (text, seconds) in [("24h", 86_400), ("90m", 5_400), ("1h 30m", 5_400), ("1s", 1), ("0s", 0)] {
            let timeout = RolloutRequestTimeout(text.to_owned());
            assert_eq!(timeout.duration().expect(text), Duration::from_secs(seconds), "{text}");
        }
    }

    #[test]
    fn the_default_is_the_constant() {
        assert_eq!(
            RolloutRequestTimeout::default().duration().expect("24h"),
            DEFAULT_ROLLOUT_REQUEST_TIMEOUT
        );
    }

    #[test]
    fn unreadable_and_huge_texts_are_errors_not_panics() {
        for text in ["", "soon", "24", "-1h", "999999999999999999999y"] {
            assert!(RolloutRequestTimeout(text.to_owned()).duration().is_err(), "{text}");
        }
    }
}
