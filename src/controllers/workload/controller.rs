//! Runs the passes: what starts them, how many at once, what follows from their results.

use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use k8s_controller::events::{Event, EventRecorder, EventType, Reporter};
use k8s_controller::{Context, Controller, Error as ControllerError, Phase, ReconcileObserver, TraceMetadata};
use kube::Client;
use kube::runtime::controller::{Action, Config as ControllerConfig, Controller as KubeController};
use kube::runtime::{reflector, watcher};

use super::error::Error;
use super::pace::Pace;
use super::{Workload, pass, watches};
use crate::args::Config;
use crate::clock::Clock;
use crate::controllers::failure;
use crate::controllers::watching::{OwnWrites, Starting, primary};
use crate::leadership::FencedClient;

/// How many passes run at the same time. None of them waits for anything but the API server.
const CONCURRENCY: u16 = 32;

/// The longest first pause after a failure.
const FIRST_AFTER_FAILURE: Duration = Duration::from_secs(2);

/// The longest first pause after a pass on a resource that had changed meanwhile. Its change is already on its way.
const FIRST_AFTER_CONFLICT: Duration = Duration::from_millis(50);

/// What all passes of one term share.
pub(super) struct Shared<W> {
    pub(super) config: Arc<Config>,
    pub(super) clock: Clock,
    pub(super) own: OwnWrites,
    pub(super) pace: Pace,
    kind: PhantomData<fn() -> W>,
}

/// Reconciles every `W` until it is dropped. `name` is the controller's in metrics and logs. Without `observer` no
/// metrics of passes are kept.
pub(in crate::controllers) async fn run<W: Workload>(
    name: &'static str,
    client: FencedClient,
    config: Arc<Config>,
    clock: Clock,
    observer: Option<Arc<dyn ReconcileObserver>>,
) {
    let client = client.client();
    let (store, writer) = reflector::store();
    let own = OwnWrites::default();
    let starting = Starting::new();
    let secondary = watches::secondary::<W>(&client, &own, &starting);
    let primary = primary::<W>(&client, writer, own.clone(), &starting);
    let reporter = Reporter {
        controller: W::REPORTER.to_owned(),
        instance: Some(config.identity.clone()),
    };
    let events = Arc::new(EventRecorder::new(client.clone(), reporter));
    let shared = Shared::<W> {
        pace: Pace::new(clock.clone()),
        config,
        clock,
        own,
        kind: PhantomData,
    };
    // The watch that this makes is replaced before it is ever polled.
    let mut controller = Controller::namespaced_all(client, shared, watcher::Config::default())
        .with_controller(|_| {
            let mut controller = KubeController::for_stream(primary, store)
                .with_config(ControllerConfig::default().concurrency(CONCURRENCY));
            for changes in secondary {
                controller = controller.reconcile_on(changes);
            }
            controller
        })
        .with_name(name)
        .with_event_recorder(events);
    if let Some(observer) = observer {
        controller = controller.with_observer(observer);
    }
    controller.run().await;
}

// === impl Shared ===

#[async_trait]
impl<W: Workload> Context for Shared<W> {
    type Resource = W;
    type Error = Error;

    // What is deleted goes by its owner references.
    const FINALIZER_NAME: Option<&'static str> = None;

    async fn apply(&self, client: Client, resource: &W, trace: &mut TraceMetadata) -> Result<Option<Action>, Error> {
        let pass = pass::run(self, client, resource, trace);
        // One resource's fault is that resource's failure: the others go on (decision L11).
        AssertUnwindSafe(pass)
            .catch_unwind()
            .await
            .unwrap_or_else(|panic| Err(Error::Panicked(failure::text_of(&*panic))))
    }

    fn error_action(
        self: Arc<Self>,
        _resource: Arc<W>,
        error: &ControllerError<Error>,
        consecutive_errors: u32,
    ) -> Action {
        let nobodys_fault = matches!(error, ControllerError::ControllerError(error) if error.is_nobodys_fault());
        Action::requeue(pause(nobodys_fault, consecutive_errors, rand::random()))
    }

    fn failure_event(&self, _resource: &W, _phase: Phase, error: &ControllerError<Error>) -> Option<Event> {
        let note = match error {
            ControllerError::ControllerError(error) if error.is_nobodys_fault() => return None,
            ControllerError::ControllerError(error) => failure::chain(error),
            ControllerError::FinalizerError(_) => error.display_chain(),
        };
        Some(Event {
            type_: EventType::Warning,
            reason: "ReconcileFailed".to_owned(),
            action: "Reconcile".to_owned(),
            note: Some(note),
            related: None,
        })
    }
}

/// How long after a failure the next pass begins, after so many before it: about 1 s, doubled each time up to about
/// 4 min; but a few moments if the resource was only seen too early. `random` spreads the pauses over their upper half.
fn pause(nobodys_fault: bool, before: u32, random: u32) -> Duration {
    let first = if nobodys_fault {
        FIRST_AFTER_CONFLICT
    } else {
        FIRST_AFTER_FAILURE
    };
    let longest = first * 2_u32.pow(before.min(7));
    longest / 2 + (longest / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound() {
        let seconds = Duration::from_secs;
        for (before, shortest, longest) in [(0, 1, 2), (1, 2, 4), (6, 64, 128), (7, 128, 256), (1000, 128, 256)] {
            assert_eq!(pause(false, before, 0), seconds(shortest), "{before}");
            assert_eq!(pause(false, before, u32::MAX), seconds(longest), "{before}");
        }
    }

    #[test]
    fn after_a_conflict_the_next_pass_comes_within_a_moment() {
        assert_eq!(pause(true, 0, u32::MAX), Duration::from_millis(50));
        assert!(pause(true, 3, u32::MAX) < Duration::from_secs(1));
    }
}
