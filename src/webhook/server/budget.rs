//! How many conversions run, and how much memory their bodies take, at the same time. Who is over it waits, and its
//! bytes stay in the kernel's buffers: back-pressure instead of memory.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::limits::Limits;

/// Unit of the shares, bytes.
const UNIT: usize = 1024;
/// Bodies up to this size, bytes, have a quarter of the memory to themselves, so that nobody who sends large ones slowly
/// is in their way.
const SMALL: usize = 1024 * 1024;

/// What all connections share. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    turns: Arc<Semaphore>,
    largest: usize,
}

/// A share, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share(#[expect(dead_code, reason = "held for its Drop")] Option<OwnedSemaphorePermit>);

// === impl Budget ===

impl Budget {
    pub(super) fn new(limits: &Limits) -> Self {
        let semaphore = |bytes: usize| Arc::new(Semaphore::new(bytes.div_ceil(UNIT)));
        Self {
            small: semaphore(limits.memory / 4),
            large: semaphore(limits.memory - limits.memory / 4),
            turns: Arc::new(Semaphore::new(limits.conversions)),
            largest: limits.body,
        }
    }

    /// Waits for the memory of a body of `length` bytes; of unknown length means the longest that is allowed.
    pub(super) async fn memory(&self, length: Option<usize>) -> Share {
        let length = length.map_or(self.largest, |length| length.min(self.largest));
        let semaphore = if length <= SMALL { &self.small } else { &self.large };
        let units = u32::try_from(length.div_ceil(UNIT)).unwrap_or(u32::MAX);
        Share(semaphore.clone().acquire_many_owned(units).await.ok())
    }

    /// Waits for the turn to convert.
    pub(super) async fn turn(&self) -> Share {
        Share(self.turns.clone().acquire_owned().await.ok())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn budget() -> Budget {
        Budget::new(&Limits::PRODUCTION)
    }

    #[tokio::test]
    async fn large_bodies_wait_for_each_other_and_small_ones_pass() {
        let budget = budget();
        let megabytes = |count: usize| Some(count * 1024 * 1024);
        let first = budget.memory(megabytes(16)).await;
        assert!(budget.memory(megabytes(9)).now_or_never().is_none(), "16 + 9 > 24");
        let second = budget.memory(megabytes(8)).await;
        assert!(budget.memory(None).now_or_never().is_none(), "of unknown length");
        let small: Vec<_> = (0..8).map(|_| budget.memory(megabytes(1)).now_or_never()).collect();
        assert!(small.iter().all(Option::is_some));
        assert!(budget.memory(Some(1)).now_or_never().is_none(), "8 MiB of small ones");
        drop(first);
        assert!(budget.memory(megabytes(16)).now_or_never().is_some());
        drop((second, small));
        assert!(budget.memory(Some(0)).now_or_never().is_some());
    }

    #[tokio::test]
    async fn sixty_four_convert_at_the_same_time() {
        let budget = budget();
        let mut shares: Vec<_> = (0..64).map(|_| budget.turn().now_or_never()).collect();
        assert!(shares.iter().all(Option::is_some));
        assert!(budget.turn().now_or_never().is_none());
        shares.pop();
        assert!(budget.turn().now_or_never().is_some());
    }
}
