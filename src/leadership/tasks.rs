//! The task set of a term: one task per controller and one for the node-upgrade watcher, so that a stalled one holds
//! up neither the others nor the election. It is spawned on entering Leader and aborted on leaving it.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::{Instrument as _, Span};

use super::{FencedClient, Permit};

/// How long an aborted task may take to end before it is left behind (decision L9b).
const ABORT_BOUND: Duration = Duration::from_secs(1);

/// Starts the leader's work for one term: returns one named future per task. Each is built anew for every term, with
/// fresh caches, and is expected to run until it is dropped; one that ends by itself ends the process (decision L11).
///
/// There is no other way to a [`Permit`] or a [`FencedClient`], so nothing can be started without leading.
pub type LeaderTasks = Arc<dyn Fn(Permit, FencedClient) -> Vec<LeaderTask> + Send + Sync>;

/// One task of the leader: its name in logs and its work.
pub type LeaderTask = (&'static str, BoxFuture<'static, ()>);

/// The running tasks of one term. Dropping it aborts them.
#[derive(Debug, Default)]
pub(in crate::leadership) struct TaskSet {
    tasks: JoinSet<()>,
    names: HashMap<Id, &'static str>,
}

/// A task that ended although nobody had aborted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::leadership) struct TaskEnd {
    /// The task's name.
    pub(in crate::leadership) name: &'static str,
    /// The message of its panic, if that is how it ended.
    pub(in crate::leadership) panic: Option<String>,
}

// === impl TaskSet ===

impl TaskSet {
    /// Spawns `tasks` on `runtime`, as parts of the term's span.
    pub(in crate::leadership) fn spawn(tasks: Vec<LeaderTask>, term: &Span, runtime: &Handle) -> Self {
        let mut set = TaskSet::default();
        for (name, work) in tasks {
            let span = tracing::info_span!(parent: term, "leader_task", task = name);
            let id = set.tasks.spawn_on(work.instrument(span), runtime).id();
            set.names.insert(id, name);
        }
        set
    }

    /// The first task that ends by itself. Never returns while all of them run, nor when there are none.
    pub(in crate::leadership) async fn ended(&mut self) -> TaskEnd {
        match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => TaskEnd {
                name: self.name(id),
                panic: None,
            },
            Some(Err(error)) => TaskEnd {
                name: self.name(error.id()),
                panic: Some(panic_message(error)),
            },
            None => std::future::pending().await,
        }
    }

    /// Aborts all tasks and waits for them, at most a second. Returns the names of those that had not ended by then:
    /// they never yield, and their permit is dead.
    pub(in crate::leadership) async fn abort(mut self) -> Vec<&'static str> {
        self.tasks.abort_all();
        let all_ended = async {
            while let Some(ended) = self.tasks.join_next_with_id().await {
                let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
                self.names.remove(&id);
            }
        };
        let _ = tokio::time::timeout(ABORT_BOUND, all_ended).await;
        let mut left_behind: Vec<_> = self.names.into_values().collect();
        left_behind.sort_unstable();
        left_behind
    }

    fn name(&mut self, id: Id) -> &'static str {
        self.names.remove(&id).unwrap_or("unknown")
    }
}

// === impl TaskEnd ===

impl fmt::Display for TaskEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.panic {
            Some(message) => write!(formatter, "the task {} panicked: {message}", self.name),
            None => write!(formatter, "the task {} ended by itself", self.name),
        }
    }
}

/// The text of a panic; those of `panic!` are always one of the two kinds of string.
fn panic_message(error: JoinError) -> String {
    let Ok(payload) = error.try_into_panic() else {
        return "aborted by somebody else".to_owned();
    };
    let payload: &(dyn Any + Send) = &*payload;
    if let Some(message) = payload.downcast_ref::<&str>() {
        (*message).to_owned()
    } else if let Some(message) = payload.downcast_ref::<String>() {
        message.clone()
    } else {
        "no message".to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::sync::Barrier;

    use futures::FutureExt as _;

    use super::*;

    fn forever(name: &'static str) -> LeaderTask {
        (name, std::future::pending().boxed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ends_is_named() {
        let tasks = vec![forever("materialize"), ("balancer", async {}.boxed())];
        let mut set = TaskSet::spawn(tasks, &Span::none(), &Handle::current());
        assert_eq!(
            set.ended().await,
            TaskEnd {
                name: "balancer",
                panic: None
            }
        );
        assert!(set.ended().now_or_never().is_none(), "the other one runs on");
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_caught_and_told() {
        let tasks = vec![("console", async { panic!("index {} is out of bounds", 7) }.boxed())];
        let mut set = TaskSet::spawn(tasks, &Span::none(), &Handle::current());
        let end = set.ended().await;
        assert_eq!(end.to_string(), "the task console panicked: index 7 is out of bounds");
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_set_never_ends() {
        assert!(TaskSet::default().ended().now_or_never().is_none());
        assert!(TaskSet::default().abort().await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn aborted_tasks_are_awaited() {
        let alive = Arc::new(());
        let held = alive.clone();
        let holds = async move {
            std::future::pending::<()>().await;
            drop(held);
        };
        let tasks = vec![forever("materialize"), ("balancer", holds.boxed())];
        let set = TaskSet::spawn(tasks, &Span::none(), &Handle::current());
        tokio::task::yield_now().await;
        assert_eq!(Arc::strong_count(&alive), 2);
        assert!(set.abort().await.is_empty());
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    /// The task blocks a worker of another runtime, as a controller that never yields would.
    #[test]
    fn a_task_that_never_yields_is_left_behind() {
        let workers = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let own = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (started, freed) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let tasks = vec![forever("balancer"), {
            let (started, freed) = (started.clone(), freed.clone());
            (
                "materialize",
                async move {
                    started.wait();
                    freed.wait();
                }
                .boxed(),
            )
        }];
        let set = TaskSet::spawn(tasks, &Span::none(), workers.handle());
        started.wait();
        assert_eq!(own.block_on(set.abort()), ["materialize"]);
        freed.wait();
    }
}
