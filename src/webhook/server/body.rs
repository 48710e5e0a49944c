//! Reads the body of a request within its limits.

use bytes::{Buf, BytesMut};
use futures::{Stream, StreamExt as _, pin_mut};
use tokio::time::{Instant, timeout, timeout_at};

use super::budget::{Budget, Share};
use super::limits::Limits;

/// A body, with the memory it was granted.
pub(super) struct Body {
    pub(super) bytes: BytesMut,
    pub(super) share: Share,
}

/// Why a body was not read to its end.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum BodyError {
    /// It is longer than allowed.
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    /// It came too slowly.
    #[error("the body did not arrive within {0:?}")]
    TooSlow(std::time::Duration),
    /// There was no memory for it in time.
    #[error("too many requests at the same time")]
    Overloaded,
    /// The client went away, or its encoding is wrong.
    #[error("the body is incomplete")]
    Incomplete,
}

/// Reads `stream`. Memory is asked for once the first bytes are there, so that a client which only announces a body
/// takes none.
pub(super) async fn read<B: Buf, E>(
    stream: impl Stream<Item = Result<B, E>>,
    length: Option<usize>,
    limits: &Limits,
    budget: &Budget,
) -> Result<Body, BodyError> {
    let too_long = BodyError::TooLong(limits.body);
    if length.is_some_and(|length| length > limits.body) {
        return Err(too_long);
    }
    pin_mut!(stream);
    let too_slow = |_| BodyError::TooSlow(limits.read);
    let started = Instant::now();
    let mut next = timeout(limits.read, stream.next()).await.map_err(too_slow)?;
    let asked = Instant::now();
    let share = timeout(limits.queue, budget.memory(length))
        .await
        .map_err(|_| BodyError::Overloaded)?;
    // The wait was ours.
    let deadline = started + limits.read + asked.elapsed();
    let mut bytes = BytesMut::with_capacity(length.unwrap_or_default());
    while let Some(chunk) = next {
        let mut chunk = chunk.map_err(|_| BodyError::Incomplete)?;
        if bytes.len() + chunk.remaining() > limits.body {
            return Err(too_long);
        }
        while chunk.has_remaining() {
            let part = chunk.chunk();
            bytes.extend_from_slice(part);
            let read = part.len();
            chunk.advance(read);
        }
        next = timeout_at(deadline, stream.next()).await.map_err(too_slow)?;
    }
    Ok(Body { bytes, share })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use futures::stream;

    use super::*;

    const LIMITS: Limits = Limits {
        body: 10,
        ..Limits::PRODUCTION
    };

    async fn read_all(
        stream: impl Stream<Item = Result<Bytes, ()>>,
        length: Option<usize>,
    ) -> Result<Vec<u8>, BodyError> {
        let body = read(stream, length, &LIMITS, &Budget::new(&LIMITS)).await?;
        Ok(body.bytes.to_vec())
    }

    fn chunks(chunks: &[&'static str]) -> impl Stream<Item = Result<Bytes, ()>> + use<> {
        let chunks: Vec<_> = chunks
            .iter()
            .map(|chunk| Ok(Bytes::from_static(chunk.as_bytes())))
            .collect();
        stream::iter(chunks)
    }

    #[tokio::test]
    async fn the_limit_itself_is_allowed() {
        for length in [None, Some(10)] {
            assert_eq!(
                read_all(chunks(&["01234", "56789"]), length).await.as_deref(),
                Ok(&b"0123456789"[..])
            );
        }
        assert_eq!(
            read_all(chunks(&["0123456789", "x"]), None).await,
            Err(BodyError::TooLong(10))
        );
        assert_eq!(read_all(chunks(&[]), Some(11)).await, Err(BodyError::TooLong(10)));
        assert_eq!(read_all(chunks(&[]), None).await.as_deref(), Ok(&b""[..]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_is_given_up_after_ten_seconds_in_all() {
        let dripping = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            Some((Ok(Bytes::from_static(b"x")), ()))
        });
        let start = Instant::now();
        assert_eq!(read_all(dripping, Some(10)).await, Err(BodyError::TooSlow(LIMITS.read)));
        assert_eq!(start.elapsed(), Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_memory_is_no_slowness_of_the_client_and_has_an_end() {
        let limits = Limits { memory: 16, ..LIMITS };
        let budget = Budget::new(&limits);
        let share = budget.memory(Some(1)).await;
        let waiting = read(chunks(&["x"]), Some(1), &limits, &budget);
        assert!(matches!(waiting.await, Err(BodyError::Overloaded)));
        let waiting = tokio::spawn({
            let budget = budget.clone();
            async move { read(chunks(&["x"]), Some(1), &limits, &budget).await.is_ok() }
        });
        tokio::time::sleep(Duration::from_secs(20)).await;
        drop(share);
        assert!(waiting.await.is_ok_and(|read| read));
    }

    #[tokio::test]
    async fn a_broken_body_is_incomplete() {
        let broken = stream::iter([Ok(Bytes::from_static(b"x")), Err(())]);
        assert_eq!(read_all(broken, Some(5)).await, Err(BodyError::Incomplete));
    }
}
