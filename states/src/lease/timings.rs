//! The three durations of the election and the order that they must keep.

use std::time::Duration;

/// Durations of the election. Their order is checked by [`Timings::new`]; a value of this type always keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timings {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
}

/// The timings of the product: lease duration 15 s, renew deadline 10 s, retry period 2 s (decision L1).
pub const PRODUCTION: Timings = Timings {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};

/// Timings with which exclusiveness or the keeping of the lease would be left to luck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTimings {
    /// The retry period is zero.
    #[error("the retry period is zero: it must be positive, for example 2 s")]
    RetryPeriodZero,
    /// The lease duration is below one second, or more seconds than `leaseDurationSeconds` can hold.
    #[error("the lease duration is {0:?}: it must be between 1 s and 2147483647 s, for example 15 s")]
    LeaseDurationOutOfRange(Duration),
    /// The lease duration does not exceed the renew deadline.
    #[error(
        "the lease duration ({lease_duration:?}) must be greater than the renew deadline ({renew_deadline:?}): \
         otherwise another replica could take over before this one has stopped"
    )]
    LeaseDurationTooShort {
        /// As given.
        lease_duration: Duration,
        /// As given.
        renew_deadline: Duration,
    },
    /// The renew deadline does not exceed one and a half retry periods.
    #[error(
        "the renew deadline ({renew_deadline:?}) must be greater than one and a half retry periods ({retry_period:?} \
         each): otherwise one late renewal would lose the lease"
    )]
    RenewDeadlineTooShort {
        /// As given.
        renew_deadline: Duration,
        /// As given.
        retry_period: Duration,
    },
}

// === impl Timings ===

impl Timings {
    /// Checks that lease duration > renew deadline > retry period × 1.5 > 0.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Timings, InvalidTimings> {
        if retry_period.is_zero() {
            return Err(InvalidTimings::RetryPeriodZero);
        }
        if lease_duration < Duration::from_secs(1) || i32::try_from(lease_duration.as_secs()).is_err() {
            return Err(InvalidTimings::LeaseDurationOutOfRange(lease_duration));
        }
        if lease_duration <= renew_deadline {
            return Err(InvalidTimings::LeaseDurationTooShort {
                lease_duration,
                renew_deadline,
            });
        }
        if renew_deadline <= retry_period.saturating_add(retry_period / 2) {
            return Err(InvalidTimings::RenewDeadlineTooShort {
                renew_deadline,
                retry_period,
            });
        }
        Ok(Timings {
            lease_duration,
            renew_deadline,
            retry_period,
        })
    }

    /// How long a candidate must see an unchanged Lease before it takes it over.
    pub fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// How long a permit lasts, counted from before the request that earned it.
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// How often a leader renews, and the least time between two attempts of a candidate to acquire.
    pub fn retry_period(&self) -> Duration {
        self.retry_period
    }

    /// The longest that one request may take (decision L10): half the renew deadline.
    pub fn request_bound(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// `leaseDurationSeconds`, rounded up so that it never promises less than is kept.
    pub(super) fn duration_seconds(&self) -> i32 {
        let whole = self.lease_duration.as_secs() + u64::from(self.lease_duration.subsec_nanos() > 0);
        i32::try_from(whole).unwrap_or(i32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn production_is_15_10_2_and_passes_its_own_check() {
        assert_eq!(Timings::new(s(15), s(10), s(2)), Ok(PRODUCTION));
        assert_eq!(PRODUCTION.request_bound(), s(5));
        assert_eq!(PRODUCTION.duration_seconds(), 15);
    }

    #[test]
    fn equal_lease_duration_and_renew_deadline_are_refused() {
        let refused = Timings::new(s(10), s(10), s(2));
        assert!(
            matches!(refused, Err(InvalidTimings::LeaseDurationTooShort { .. })),
            "{refused:?}"
        );
    }

    #[test]
    fn a_renew_deadline_of_one_and_a_half_retry_periods_is_refused() {
        let refused = Timings::new(s(15), s(3), s(2));
        assert!(
            matches!(refused, Err(InvalidTimings::RenewDeadlineTooShort { .. })),
            "{refused:?}"
        );
        assert!(Timings::new(s(15), Duration::from_millis(3001), s(2)).is_ok());
    }

    #[test]
    fn zero_is_refused() {
        assert_eq!(Timings::new(s(15), s(10), s(0)), Err(InvalidTimings::RetryPeriodZero));
        assert_eq!(
            Timings::new(s(0), s(0), s(1)),
            Err(InvalidTimings::LeaseDurationOutOfRange(s(0)))
        );
    }

    #[test]
    fn a_lease_duration_that_the_field_cannot_hold_is_refused() {
        assert!(matches!(
            Timings::new(s(2_147_483_648), s(10), s(2)),
            Err(InvalidTimings::LeaseDurationOutOfRange(_))
        ));
        assert!(matches!(
            Timings::new(Duration::MAX, s(10), Duration::MAX),
            Err(InvalidTimings::LeaseDurationOutOfRange(_))
        ));
        assert!(matches!(
            Timings::new(s(15), s(10), Duration::MAX),
            Err(InvalidTimings::RenewDeadlineTooShort { .. })
        ));
    }

    #[test]
    fn a_fraction_of_a_second_is_rounded_up() {
        let timings = Timings::new(Duration::from_millis(1500), s(1), Duration::from_millis(200)).unwrap();
        assert_eq!(timings.duration_seconds(), 2);
    }
}
