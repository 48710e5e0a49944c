//! Runs the passes: what starts them, how many at once, what follows from their results.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::channel::mpsc;
use k8s_controller::events::{Event, EventRecorder, EventType, Reporter};
use k8s_controller::{Context, Controller, Error as ControllerError, Phase, ReconcileObserver, TraceMetadata};
use kube::runtime::controller::{Action, Config as ControllerConfig, Controller as KubeController};
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};

use super::error::Error;
use super::inquiry::Inquiries;
use super::messages::Messages;
use super::needs_update::NeedsUpdate;
use super::pass;
use super::watches;
use crate::api::labels::FINALIZER;
use crate::api::v1alpha1::Materialize;
use crate::args::Config;
use crate::clock::Clock;
use crate::controllers::watching::{OwnWrites, Starting, primary};
use crate::leadership::FencedClient;

/// How many passes run at the same time. None of them waits for anything but the API server.
const CONCURRENCY: u16 = 32;

/// How long a pass waits for further changes: objects are often deleted or changed several at a time.
const COALESCE: Duration = Duration::from_millis(5);

/// The reporting controller of the events, one for each kind of resource (decision O1).
const REPORTER: &str = "orchestratord.materialize.cloud/materialize";

/// The name of this controller in metrics and logs.
const NAME: &str = "materialize";

/// What all passes of one term share.
pub(super) struct Shared {
    pub(super) config: Arc<Config>,
    pub(super) clock: Clock,
    pub(super) store: Store<Materialize>,
    pub(super) own: OwnWrites,
    pub(super) inquiries: Inquiries,
    pub(super) needs_update: NeedsUpdate,
    pub(super) messages: Messages,
}

/// Reconciles every `Materialize` until it is dropped (docs/reference/rollouts.md).
///
/// Dropping it also ends what is being asked of environmentd. `needs_update` is emptied at the start; whoever ends
/// the term empties it again. Without `observer` no metrics of passes are kept.
pub async fn run(
    client: FencedClient,
    config: Arc<Config>,
    clock: Clock,
    needs_update: NeedsUpdate,
    observer: Option<Arc<dyn ReconcileObserver>>,
) {
    needs_update.reset();
    let client = client.client();
    let (wake, woken) = mpsc::unbounded();
    let (store, writer) = reflector::store();
    let own = OwnWrites::default();
    let starting = Starting::new();
    let secondary = watches::secondary(&client, &store, &own, &starting);
    let primary = primary(&client, writer, own.clone(), &starting);
    let reporter = Reporter {
        controller: REPORTER.to_owned(),
        instance: Some(config.identity.clone()),
    };
    let events = Arc::new(EventRecorder::new(client.clone(), reporter));
    let shared = Shared {
        messages: Messages::new(clock.clone()),
        inquiries: Inquiries::new(wake),
        store: store.clone(),
        config,
        clock,
        own,
        needs_update,
    };
    // The watch that this makes is replaced before it is ever polled.
    let mut controller = Controller::namespaced_all(client, shared, watcher::Config::default())
        .with_controller(|_| {
            let mut controller = KubeController::for_stream(primary, store)
                .with_config(ControllerConfig::default().concurrency(CONCURRENCY).debounce(COALESCE))
                .reconcile_on(woken);
            for changes in secondary {
                controller = controller.reconcile_on(changes);
            }
            controller
        })
        .with_name(NAME)
        .with_event_recorder(events);
    if let Some(observer) = observer {
        controller = controller.with_observer(observer);
    }
    controller.run().await;
}

// === impl Shared ===

#[async_trait]
impl Context for Shared {
    type Resource = Materialize;
    type Error = Error;

    const FINALIZER_NAME: Option<&'static str> = Some(FINALIZER);

    async fn apply(
        &self,
        client: Client,
        materialize: &Materialize,
        trace: &mut TraceMetadata,
    ) -> Result<Option<Action>, Error> {
        // Boxed: it is large, and many passes may be under way.
        let pass = Box::pin(pass::run(self, client, materialize, trace));
        // One resource's fault is that resource's failure: the others go on (decision L11).
        AssertUnwindSafe(pass)
            .catch_unwind()
            .await
            .unwrap_or_else(|panic| Err(Error::Panicked(text_of(&*panic))))
    }

    async fn cleanup(
        &self,
        _client: Client,
        materialize: &Materialize,
        _trace: &mut TraceMetadata,
    ) -> Result<Option<Action>, Error> {
        let uid = materialize.uid().unwrap_or_default();
        self.inquiries.keep_only(&uid, None);
        self.messages.forget(&uid);
        self.needs_update.set(
            &materialize.namespace().unwrap_or_default(),
            &materialize.name_any(),
            false,
        );
        Ok(None)
    }

    fn failure_event(&self, _resource: &Materialize, phase: Phase, error: &ControllerError<Error>) -> Option<Event> {
        if error.is_conflict() || own_error(error).is_some_and(Error::is_nobodys_fault) {
            return None;
        }
        let (reason, action) = match phase {
            Phase::Cleanup | Phase::Delete => ("CleanupFailed", "Cleanup"),
            _ => ("ReconcileFailed", "Reconcile"),
        };
        Some(Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            action: action.to_owned(),
            note: Some(own_error(error).map_or_else(|| error.display_chain(), Error::chain)),
            related: None,
        })
    }
}

/// The pass's own error, without the words of the runtime around it.
fn own_error(error: &ControllerError<Error>) -> Option<&Error> {
    use kube::runtime::finalizer::Error as Finalizer;
    match error {
        ControllerError::ControllerError(error)
        | ControllerError::FinalizerError(Finalizer::ApplyFailed(error) | Finalizer::CleanupFailed(error)) => {
            Some(error)
        }
        ControllerError::FinalizerError(_) => None,
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}
