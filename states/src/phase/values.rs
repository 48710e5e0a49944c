//! Phases, events, and the record of a transition.

use std::fmt;
use std::time::Duration;

use crate::lease::Loss;

/// A phase of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Registering CRDs, loading certificates, building the client.
    Starting,
    /// Campaigning for the Lease; the webhook serves.
    Candidate,
    /// Holding the Lease; the task set runs.
    Leader,
    /// Draining: ending the work, then releasing the Lease.
    Releasing,
    /// Draining: the webhook still accepts, because endpoints are withdrawn asynchronously.
    Lingering,
    /// Draining: requests in flight end.
    Closing,
    /// Done; the process ends with this exit code.
    Exited(i32),
}

/// Something that happened to a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Start-up is complete.
    Ready,
    /// Start-up can't succeed: an unusable argument, or the API server refuses this operator's own CRD.
    StartupFailed,
    /// The Lease was acquired.
    Acquired {
        /// `leaseTransitions` of the term.
        term: i32,
    },
    /// The permit of the term ended.
    Lost(Loss),
    /// SIGTERM or SIGINT arrived, by its number.
    Terminate(i32),
    /// A task that must never end has ended or panicked (decision L11), by its name.
    TaskEnded(&'static str),
    /// After a loss: the tasks of the old term and its last requests have ended, or their bounds have
    /// ([`Effects::settle`](super::Effects::settle)).
    Settled,
    /// The release is done, was given up, or its bound has elapsed.
    Released,
    /// The grace period of the webhook is over.
    LingerOver,
    /// The webhook has ended, or its bound has elapsed.
    Closed,
}

/// Why a replica went from one phase to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Start-up is complete.
    Ready,
    /// Start-up can't succeed.
    StartupFailed,
    /// The Lease was acquired.
    Acquired,
    /// The permit ended.
    Lost(Loss),
    /// A first termination signal, by its number.
    Signal(i32),
    /// A second termination signal, by its number.
    SecondSignal(i32),
    /// A task ended that must not, by its name.
    TaskEnded(&'static str),
    /// The release is over, with or without success.
    Released,
    /// The grace period of the webhook is over.
    LingerOver,
    /// The webhook has ended.
    Closed,
}

/// The record of one transition: the fields of its log line (decision O5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The phase that was left.
    pub from: Phase,
    /// The phase that was entered.
    pub to: Phase,
    /// Why.
    pub cause: Cause,
    /// `leaseTransitions` of the term that begins or ends here.
    pub term: Option<i32>,
    /// How long `from` lasted.
    pub held_for: Duration,
}

/// The bounds of a shutdown. Those of the three leaves of Draining are 15 s together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How long an aborted task may take to end before it is left behind.
    pub task: Duration,
    /// How long a mutating request that had passed the fence may take to end.
    pub request: Duration,
    /// The longest that Releasing lasts, its waits for tasks and requests included.
    pub release: Duration,
    /// How long Lingering lasts.
    pub linger: Duration,
    /// The longest that Closing lasts.
    pub close: Duration,
}

// === impl Phase ===

impl Phase {
    /// All values of the label `phase` of `orchestratord_phase`, in the order of a replica's life.
    pub const NAMES: [&'static str; 7] = [
        "Starting",
        "Candidate",
        "Leader",
        "Releasing",
        "Lingering",
        "Closing",
        "Exited",
    ];

    /// The name of the phase, without an exit code.
    pub fn name(&self) -> &'static str {
        match self {
            Phase::Starting => "Starting",
            Phase::Candidate => "Candidate",
            Phase::Leader => "Leader",
            Phase::Releasing => "Releasing",
            Phase::Lingering => "Lingering",
            Phase::Closing => "Closing",
            Phase::Exited(_) => "Exited",
        }
    }

    /// Whether this is one of the three leaves of Draining.
    pub fn is_draining(&self) -> bool {
        matches!(self, Phase::Releasing | Phase::Lingering | Phase::Closing)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Phase::Exited(code) => write!(f, "Exited({code})"),
            other => f.write_str(other.name()),
        }
    }
}

// === impl Cause ===

impl Cause {
    /// The kind of cause, one of a fixed set: a label of metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Cause::Ready => "ready",
            Cause::StartupFailed => "startup_failed",
            Cause::Acquired => "acquired",
            Cause::Lost(loss) => loss.name(),
            Cause::Signal(_) => "signal",
            Cause::SecondSignal(_) => "second_signal",
            Cause::TaskEnded(_) => "task_ended",
            Cause::Released => "released",
            Cause::LingerOver => "linger_over",
            Cause::Closed => "closed",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Lost(loss) => write!(f, "lost: {loss}"),
            Cause::Signal(number) => write!(f, "signal {number}"),
            Cause::SecondSignal(number) => write!(f, "second signal {number}"),
            Cause::TaskEnded(task) => write!(f, "task {task} ended"),
            other => f.write_str(other.name()),
        }
    }
}

// === impl Bounds ===

impl Bounds {
    /// The bounds of the product (decision L9b): 1 s for a task, 4 s for a request, 5 s for each leaf of Draining.
    pub const PRODUCTION: Bounds = Bounds {
        task: Duration::from_secs(1),
        request: Duration::from_secs(4),
        release: Duration::from_secs(5),
        linger: Duration::from_secs(5),
        close: Duration::from_secs(5),
    };
}
