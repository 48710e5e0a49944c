//! One term: from the permit to the end of its tasks and of its last writes (decision L9b).

use std::sync::Arc;
use std::time::Duration;

use states::phase::{Bounds, Event};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument as _, Span, error, info_span, warn};

use super::driver::Notice;
use super::fence::FencedClient;
use super::permit::Permit;
use super::tasks::TaskSet;
use super::{Candidacy, Observer};

/// Names under which the start of the controllers itself fails.
const GATE: &str = "gate";
const START: &str = "start of the controllers";

/// A running term. Dropping it leaves the tasks to the supervisor, which ends them once it is told to.
pub(in crate::leadership) struct Term {
    permit: Permit,
    stop: CancellationToken,
    supervisor: JoinHandle<Vec<&'static str>>,
}

// === impl Term ===

impl Term {
    /// Starts the work of the term of `permit`.
    pub(in crate::leadership) fn start(
        permit: Permit,
        candidacy: Arc<Candidacy>,
        workers: Handle,
        notices: mpsc::UnboundedSender<Notice>,
    ) -> Self {
        let span = info_span!(parent: None, "term", term = permit.term());
        let stop = CancellationToken::new();
        let supervisor =
            supervise(permit.clone(), candidacy, workers, notices, stop.clone(), span.clone()).instrument(span);
        Term {
            permit,
            stop,
            supervisor: tokio::spawn(supervisor),
        }
    }

    /// Ends the permit: no write passes the fence any more.
    pub(in crate::leadership) fn revoke(&self) {
        self.permit.revoke();
    }

    /// Aborts the tasks, without waiting for them.
    pub(in crate::leadership) fn abort(&self) {
        self.stop.cancel();
    }

    /// Waits for the aborted tasks and for the writes that had passed the fence, each within its bound. Returns
    /// whether every write has been answered: only then may the Lease be released.
    pub(in crate::leadership) async fn settle(self, bounds: Bounds, observer: Arc<dyn Observer>) -> bool {
        let term = self.permit.term();
        let tasks = async {
            for task in ended(self.supervisor, bounds.task).await {
                error!(
                    task,
                    term, "the task did not end after its abort and is left behind: it never yields"
                );
                observer.task_left_behind(task);
            }
        };
        let writes = tokio::time::timeout(bounds.request, self.permit.writes_settled());
        let ((), writes) = tokio::join!(tasks, writes);
        match writes {
            Ok(0) => true,
            Ok(abandoned) => {
                warn!(
                    term,
                    abandoned, "writes of the term that has ended were given up without an answer"
                );
                false
            }
            Err(_) => {
                let open = self.permit.writes().open;
                warn!(term, open, "writes of the term that has ended are still open");
                false
            }
        }
    }
}

/// The names of the tasks that have not ended; `bound` is a second line behind the supervisor's own.
async fn ended(supervisor: JoinHandle<Vec<&'static str>>, bound: Duration) -> Vec<&'static str> {
    match tokio::time::timeout(bound + Duration::from_millis(100), supervisor).await {
        Ok(Ok(left_behind)) => left_behind,
        Ok(Err(_)) | Err(_) => vec!["supervisor"],
    }
}

/// Runs the task set until it is told to stop; reports the first task that ends by itself. Returns the names of the
/// tasks that did not end after their abort.
async fn supervise(
    permit: Permit,
    candidacy: Arc<Candidacy>,
    workers: Handle,
    notices: mpsc::UnboundedSender<Notice>,
    stop: CancellationToken,
    span: Span,
) -> Vec<&'static str> {
    let term = permit.term();
    let report = |task: &'static str| {
        // Without a driver nobody needs to know.
        let _ = notices.send(Notice::Event(Event::TaskEnded(task)));
    };
    if let Some(gate) = &candidacy.gate {
        // It may read more than the leadership thread has time for.
        let mut waiting = AbortOnDropHandle::new(workers.spawn(gate(permit.clone()).in_current_span()));
        tokio::select! {
            biased;
            () = stop.cancelled() => return Vec::new(),
            end = &mut waiting => if let Err(panic) = end {
                error!(term, error = %panic, "the wait before the start of the controllers panicked");
                report(GATE);
                return Vec::new();
            }
        }
    }
    let tasks = {
        // Whatever a client or a controller spawns belongs to the workers, not to the leadership thread.
        let _workers = workers.enter();
        match FencedClient::build(&candidacy.leader_client, permit.clone()) {
            Ok(client) => (candidacy.tasks)(permit, client),
            Err(error) => {
                error!(term, error = format!("{error:#}"), "can't build the leader's client");
                report(START);
                return Vec::new();
            }
        }
    };
    let mut set = TaskSet::spawn(tasks, &span, &workers);
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        end = set.ended() => {
            error!(task = end.name, term, "{end}: this replica stops, its successor starts afresh");
            report(end.name);
            stop.cancelled().await;
        }
    }
    set.abort().await
}
