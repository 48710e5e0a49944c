//! Leadership: drives the phases and the election of the crate `states` with real time, requests, signals and tasks
//! (docs/leadership.md).
//!
//! Belongs here: Lease I/O, the permit and the fence that enforces it, the leader's task set, signals, the order of a
//! shutdown. Does not belong here: the rules of the protocol and which phase follows which (`states`), what the leader
//! does (`controllers`), metrics (`telemetry`, through [`Observer`]).

mod complaints;
mod driver;
mod effects;
mod elector;
mod fence;
mod lease;
mod narrator;
mod observer;
mod permit;
mod requests;
mod signals;
#[cfg(test)]
mod standin;
mod tasks;
mod term;
mod watch;

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::runtime::Handle;

pub use fence::{ClientFactory, Fence, FenceError, FenceLayer, FencedClient, is_refused};
pub use observer::{Observer, Transition};
pub use permit::Permit;
pub use signals::{Signals, Termination};
pub use tasks::{LeaderTask, LeaderTasks};

use crate::clock::Clock;

/// The name of the Lease in the operator's namespace.
pub const LEASE_NAME: &str = "orchestratord";

/// What a replica needs from its first moment on. [`Leadership::run`] makes a leader, or at least a candidate, of it.
pub struct Leadership {
    /// The clock of the permit and of the log.
    pub clock: Clock,
    /// The runtime of everything but leadership itself: start-up, controllers, webhook.
    pub workers: Handle,
    /// Learns what happens.
    pub observer: Arc<dyn Observer>,
    /// The webhook, if this replica serves one; without it a shutdown does not linger.
    pub webhook: Option<Arc<dyn WebhookDrain>>,
    /// Seed of the jitter of retries; different for each replica.
    pub seed: u64,
}

/// What start-up brings: all that it takes to campaign and to lead.
pub struct Candidacy {
    /// The holder that this replica writes into the Lease; not empty, and different for each replica.
    pub identity: String,
    /// The operator's namespace, where the Lease is.
    pub namespace: String,
    /// Builds the Lease's own client, which must not retry by itself. Called once, on the leadership thread, where its
    /// connections then live.
    pub lease_client: Box<dyn Fn() -> anyhow::Result<kube::Client> + Send + Sync>,
    /// Builds the controllers' client anew for each term, around the fence.
    pub leader_client: ClientFactory,
    /// What must be over before the controllers of a new term start, for example an older operator (decision L15).
    /// It waits on the workers, and is cut when the term ends.
    pub gate: Option<Gate>,
    /// Builds the leader's work anew for each term.
    pub tasks: LeaderTasks,
}

/// A condition that a new leader waits for before it starts its controllers.
pub type Gate = Arc<dyn Fn(Permit) -> BoxFuture<'static, ()> + Send + Sync>;

/// How the shutdown of the webhook is sequenced.
pub trait WebhookDrain: Send + Sync {
    /// From now on: go on accepting, but ask clients to use other connections (`Connection: close`).
    fn linger(&self);

    /// Stops accepting and ends when the last request has been answered. The caller bounds it.
    fn close(&self) -> BoxFuture<'static, ()>;
}
