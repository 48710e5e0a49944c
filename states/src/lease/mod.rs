//! The lease protocol: a pure function from what a replica knows and has just seen to what it does next.
//!
//! Belongs here: who may write the Lease and when, how long a permit lasts, what an answer or a missing answer proves
//! (decisions L1 to L9b; explained in `docs/leadership.md`). Does not belong here: sending requests, reading clocks,
//! drawing random numbers, Kubernetes types, log lines.
//!
//! The driver keeps a [`State`], calls [`step()`] with each [`Observation`] and carries out the [`Action`]s in their
//! order:
//!
//! * It starts with [`Observation::Started`], and reports `Elapsed` when the moment of the last [`Action::WaitUntil`]
//!   has come (a report too many or too late is harmless).
//! * At most one request is under way at any time. Every [`Action::Send`] is answered by one [`Observation::Answer`]
//!   with the same [`RequestId`], at the latest at the request's deadline, with [`Answer::Unknown`] if nothing else
//!   is known by then. The step gives up on a request by itself when its deadline has passed; an answer that comes
//!   later is ignored.
//! * The driver keeps the full object of every Lease that it hands in until a newer one arrives, and sends it with
//!   only `spec` replaced, so that labels, annotations, owner references and finalizers survive (decision L9a).
//!   It always sends the `resourceVersion` and `uid` of [`Request`] (decision L8).
//! * Reads are quorum reads: no `resourceVersion` parameter.

mod candidate;
mod leader;
mod messages;
#[cfg(test)]
mod model;
mod release;
mod rules;
mod sight;
mod state;
mod step;
#[cfg(test)]
mod tests;
mod timings;
mod values;

pub use messages::{Action, Answer, Loss, NotReleased, Observation, Operation, Request, RequestId};
pub use state::{Standing, State};
pub use step::step;
pub use timings::{InvalidTimings, PRODUCTION, Timings};
pub use values::{Identity, Lease, Moment, Now, ResourceVersion, Spec, Uid};
