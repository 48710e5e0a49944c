//! The phases of a replica: Starting, Candidate, Leader, Draining (Releasing, Lingering, Closing) and Exited.
//!
//! Belongs here: which phase follows which, and every effect of entering or leaving one, in its order (decision L9b),
//! as calls of [`Effects`]. Does not belong here: what the effects do, timers, signals, the lease protocol.
//!
//! Entry and exit actions start things; they don't wait for them. What has ended is reported as an [`Event`], so that
//! a signal is heard at any time.
//!
//! ```text
//! Starting ──Ready──▶ Candidate ◀──Lost── Leader
//!    │                    │  ▲──Acquired──▶ │
//!    └─────Terminate──────┴────Terminate────┘
//!                         ▼
//!         Draining: Releasing ▶ Lingering ▶ Closing ──▶ Exited(code)
//! ```

mod effects;
mod machine;
#[cfg(test)]
mod tests;
mod values;

pub use effects::Effects;
pub use machine::Phases;
pub use values::{Bounds, Cause, Event, Phase, Transition};
