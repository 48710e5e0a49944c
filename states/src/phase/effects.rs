//! What the phases do to the world.

use std::future::Future;

use super::values::{Bounds, Event, Phase, Transition};
use crate::lease::Moment;

/// The effects of entering and leaving phases. Implemented by the driver, and by a recorder in the tests.
///
/// No method may wait for anything that takes long: what is started here reports its end as an [`Event`].
pub trait Effects {
    /// The monotonic clock, for [`Transition::held_for`].
    fn now(&self) -> Moment;

    /// A transition is complete: log it, count it, show it.
    fn transitioned(&mut self, transition: &Transition) -> impl Future<Output = ()> + Send;

    /// An event came in a phase in which it has no meaning; nothing happened. To be logged at warn.
    fn refused(&mut self, phase: Phase, event: &Event) -> impl Future<Output = ()> + Send;

    /// Start-up is complete: begin to campaign. Called once.
    fn campaign(&mut self) -> impl Future<Output = ()> + Send;

    /// Leader is entered, first: mint the permit of the term.
    fn mint_permit(&mut self, term: i32) -> impl Future<Output = ()> + Send;

    /// Leader is entered, second: `orchestratord_is_leader` goes to 1.
    fn set_leader_gauge(&mut self) -> impl Future<Output = ()> + Send;

    /// Leader is entered, last: build and spawn the task set.
    fn spawn_tasks(&mut self, term: i32) -> impl Future<Output = ()> + Send;

    /// Leader is left, first: no write passes the fence any more.
    fn revoke_permit(&mut self) -> impl Future<Output = ()> + Send;

    /// Leader is left, second: `orchestratord_is_leader` goes to 0; `environmentd_needs_update` and the other gauges
    /// that only a leader knows are reset.
    fn reset_gauges(&mut self) -> impl Future<Output = ()> + Send;

    /// Leader is left, third: abort every task, without waiting.
    fn abort_tasks(&mut self) -> impl Future<Output = ()> + Send;

    /// The term was lost: start to wait for the aborted tasks (`bounds.task`) and for the mutating requests that had
    /// passed the fence (`bounds.request`). Ends with [`Event::Settled`].
    fn settle(&mut self, bounds: &Bounds) -> impl Future<Output = ()> + Send;

    /// Draining begins: start the waits of [`Effects::settle`] and then the release. If a mutating request is still
    /// open in the end, the Lease is left to expire, with a warning. Ends with [`Event::Released`], at the latest
    /// after `bounds.release`.
    fn release(&mut self, bounds: &Bounds) -> impl Future<Output = ()> + Send;

    /// The webhook goes on accepting for `bounds.linger`. Ends with [`Event::LingerOver`].
    fn linger(&mut self, bounds: &Bounds) -> impl Future<Output = ()> + Send;

    /// The webhook stops accepting and finishes what it has. Ends with [`Event::Closed`], at the latest after
    /// `bounds.close`.
    fn close(&mut self, bounds: &Bounds) -> impl Future<Output = ()> + Send;
}
